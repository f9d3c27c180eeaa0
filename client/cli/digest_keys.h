// Digest keys of this user's uploads, by which `dpar predict` recognises a graph that a model was trained on.
#ifndef DPAR_CLIENT_CLI_DIGEST_KEYS_H_
#define DPAR_CLIENT_CLI_DIGEST_KEYS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/sdk/variables.h"

namespace dpar {

// Both in lower-case hex. Saves to DataDirectory/digest-keys, mode 0600; INVALID_FIELD without it. Returns the path.
absl::StatusOr<std::string> SaveDigestKey(const Variables& variables, const std::string& content_digest,
                                          const std::string& key);

// In hex; nothing when it is not kept here.
std::optional<std::string> FindDigestKey(const Variables& variables, const std::string& content_digest);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_DIGEST_KEYS_H_
