#ifndef DPAR_CLIENT_CLI_TRUSTED_KEYS_H_
#define DPAR_CLIENT_CLI_TRUSTED_KEYS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/sdk/connection.h"
#include "core/certificate/key_list.h"

namespace dpar {

// Each path is a file with a key or a list of keys (core/certificate/key_list.h), or a directory of which all files
// that end in .pub or .pem are read, at least one. A key that is revoked in any of them is revoked.
absl::StatusOr<std::vector<KnownKey>> ReadTrustedKeys(const std::vector<std::string>& paths);

absl::StatusOr<std::vector<KnownKey>> AskForKeys(Connection& connection);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_TRUSTED_KEYS_H_
