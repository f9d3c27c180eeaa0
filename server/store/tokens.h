// Tokens as stored. All functions run inside the caller's transaction.
#ifndef DPAR_SERVER_STORE_TOKENS_H_
#define DPAR_SERVER_STORE_TOKENS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dpar/v1/operator.pb.h"
#include "server/store/database.h"

namespace dpar {

// Only the SHA-256 of a salt and the secret is stored.
struct StoredToken {
  v1::Token token;
  std::string tenant;  // tenants/{t}; empty for an operator
  std::string salt;    // hex
  std::string hash;    // hex of SHA-256(salt bytes + secret)
};
absl::Status InsertToken(Transaction& transaction, const StoredToken& token);
// By the token's id, the public part of a bearer token.
absl::StatusOr<StoredToken> GetToken(Transaction& transaction, const std::string& token_id);
struct TokenPage {
  std::vector<v1::Token> tokens;
  std::string next_page_token;
};
// `parent` is tenants/{t} or operator.
absl::StatusOr<TokenPage> ListTokens(Transaction& transaction, const std::string& parent, int64_t page_size,
                                     const std::string& page_token);
absl::Status RevokeToken(Transaction& transaction, const std::string& token_id, absl::Time now);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_TOKENS_H_
