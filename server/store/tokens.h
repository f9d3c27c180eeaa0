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

// The SHA-256 of salt and secret; neither is set for a token with a certificate_uri.
struct StoredToken {
  v1::Token token;
  std::string tenant;  // tenants/{t}; empty for an operator
  std::string salt;    // hex
  std::string hash;    // hex of SHA-256(salt bytes + secret)
};
std::string TokenId(const std::string& token_name);
// ALREADY_EXISTS / RESOURCE_EXISTS when a live token of any tenant has the same certificate_uri.
absl::Status InsertToken(Transaction& transaction, const StoredToken& token);
absl::StatusOr<StoredToken> GetToken(Transaction& transaction, const std::string& token_id);
absl::StatusOr<StoredToken> LockToken(Transaction& transaction, const std::string& token_id);
// The unrevoked one. NOT_FOUND when there is none.
absl::StatusOr<StoredToken> GetCertificateToken(Transaction& transaction, const std::string& certificate_uri);
struct TokenPage {
  std::vector<v1::Token> tokens;
  std::string next_page_token;
};
absl::StatusOr<TokenPage> ListTokens(Transaction& transaction, const std::string& parent, int64_t page_size,
                                     const std::string& page_token);
// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED above `max_tokens` live tokens.
absl::Status CheckTokenCount(Transaction& transaction, const std::string& parent, int64_t max_tokens, absl::Time now);
// Live tokens of `parent`, or of all when empty, that expire before `until`, soonest first. Reads every token.
struct ExpiringTokens {
  std::vector<v1::Token> tokens;
  int64_t count = 0;
};
absl::StatusOr<ExpiringTokens> ListExpiringTokens(Transaction& transaction, const std::string& parent, absl::Time now,
                                                  absl::Time until, int64_t limit);
absl::Status RevokeToken(Transaction& transaction, const std::string& token_id, absl::Time now);
// Unless it expires sooner.
absl::Status ExpireToken(Transaction& transaction, const std::string& token_id, absl::Time time);
// Keeps the later use. OK for an unknown token.
absl::Status SetLastUse(Transaction& transaction, const std::string& token_id, absl::Time time);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_TOKENS_H_
