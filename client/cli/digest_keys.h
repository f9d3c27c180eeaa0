// The digest keys of this user's uploads, by which `dpar predict` knows a graph again that a model was trained on.
#ifndef DPAR_CLIENT_CLI_DIGEST_KEYS_H_
#define DPAR_CLIENT_CLI_DIGEST_KEYS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/sdk/variables.h"

namespace dpar {

// Keeps the key of a content digest, both in lower-case hex, in DataDirectory/digest-keys, mode 0600. Returns the file.
// INVALID_FIELD when there is no such place.
absl::StatusOr<std::string> SaveDigestKey(const Variables& variables, const std::string& content_digest,
                                          const std::string& key);

// The key, in hex; nothing when it is not kept here.
std::optional<std::string> FindDigestKey(const Variables& variables, const std::string& content_digest);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_DIGEST_KEYS_H_
