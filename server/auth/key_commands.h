// `dpard keys`; works also while servers run.
#ifndef DPAR_SERVER_AUTH_KEY_COMMANDS_H_
#define DPAR_SERVER_AUTH_KEY_COMMANDS_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/store/data_directory.h"

namespace dpar {

absl::Status ListKeys(const DataDirectory& directory, std::ostream& out);
// Prints every public key in the form that `dpar certificate verify --key` takes.
absl::Status PrintKeys(const DataDirectory& directory, std::ostream& out);
// FAILED_PRECONDITION while another process changes keys.
absl::Status RotateKey(const DataDirectory& directory, absl::Time now, std::ostream& out);
absl::Status RevokeKey(const DataDirectory& directory, const std::string& key_id, const std::string& reason,
                       absl::Time now, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_KEY_COMMANDS_H_
