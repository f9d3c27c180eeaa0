// Makes certificate authority, server certificate, signing key and first operator token. Safe to run again: keeps what
// is complete and completes what a crash left.
#ifndef DPAR_SERVER_AUTH_INITIALISE_H_
#define DPAR_SERVER_AUTH_INITIALISE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/random/random.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"

namespace dpar {

// Paths of what was made; empty when everything existed.
using MadeFiles = std::vector<std::string>;

// The server certificate is for localhost, 127.0.0.1, ::1 and `tls_names`; without `tls_names`, neither it nor an
// authority is made. Makes a token when no operator token is live, so that a user who can read the data directory can
// always get in. DATA_LOSS when a file is missing that cannot be made again without breaking trust.
absl::StatusOr<MadeFiles> Initialise(const DataDirectory& directory, Database& database,
                                     const std::optional<std::vector<std::string>>& tls_names, absl::Time now,
                                     RandomSource& random);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_INITIALISE_H_
