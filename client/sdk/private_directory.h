#ifndef DPAR_CLIENT_SDK_PRIVATE_DIRECTORY_H_
#define DPAR_CLIENT_SDK_PRIVATE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "client/sdk/variables.h"

namespace dpar {

inline constexpr int kPrivateFileMode = 0600;

// $XDG_CONFIG_HOME/dpar, or ~/.config/dpar; empty when neither variable is set.
std::string ConfigDirectory(const Variables& variables);
// $XDG_DATA_HOME/dpar, or ~/.local/share/dpar.
std::string DataDirectory(const Variables& variables);

// Makes `path` and its missing parents with mode 0700. INVALID_FIELD when it cannot.
absl::Status MakePrivateDirectory(const std::string& path);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_PRIVATE_DIRECTORY_H_
