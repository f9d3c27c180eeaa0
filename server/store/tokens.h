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

// Only the SHA-256 of a salt and the secret is stored; of a token with a certificate_uri, which has no secret, neither.
struct StoredToken {
  v1::Token token;
  std::string tenant;  // tenants/{t}; empty for an operator
  std::string salt;    // hex
  std::string hash;    // hex of SHA-256(salt bytes + secret)
};
// The {token} of tenants/{tenant}/tokens/{token}.
std::string TokenId(const std::string& token_name);
// ALREADY_EXISTS / RESOURCE_EXISTS when a live token has the same certificate_uri, of whichever tenant.
absl::Status InsertToken(Transaction& transaction, const StoredToken& token);
// By the token's id, the public part of a bearer token.
absl::StatusOr<StoredToken> GetToken(Transaction& transaction, const std::string& token_id);
// The same for whoever changes it: no other transaction does until this one ends.
absl::StatusOr<StoredToken> LockToken(Transaction& transaction, const std::string& token_id);
// The one that is not revoked. NOT_FOUND when there is none.
absl::StatusOr<StoredToken> GetCertificateToken(Transaction& transaction, const std::string& certificate_uri);
struct TokenPage {
  std::vector<v1::Token> tokens;
  std::string next_page_token;
};
// `parent` is tenants/{t} or operator.
absl::StatusOr<TokenPage> ListTokens(Transaction& transaction, const std::string& parent, int64_t page_size,
                                     const std::string& page_token);
// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED when `parent` has more than `max_tokens` that are neither revoked nor expired.
absl::Status CheckTokenCount(Transaction& transaction, const std::string& parent, int64_t max_tokens, absl::Time now);
// Tokens that are neither revoked nor expired and expire before `until`, the soonest first, and how many there are: of
// `parent`, or of all when it is empty. Reads every token.
struct ExpiringTokens {
  std::vector<v1::Token> tokens;
  int64_t count = 0;
};
absl::StatusOr<ExpiringTokens> ListExpiringTokens(Transaction& transaction, const std::string& parent, absl::Time now,
                                                  absl::Time until, int64_t limit);
absl::Status RevokeToken(Transaction& transaction, const std::string& token_id, absl::Time now);
// Lets a token expire at `time`, unless it does sooner.
absl::Status ExpireToken(Transaction& transaction, const std::string& token_id, absl::Time time);
// Notes a use, unless a later one is noted. A token that is not there is no error.
absl::Status SetLastUse(Transaction& transaction, const std::string& token_id, absl::Time time);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_TOKENS_H_
