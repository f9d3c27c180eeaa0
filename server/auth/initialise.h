// Makes what a server needs to be trusted: certificate authority, server certificate, signing key, first operator
// token. Safe to run again: what is complete stays as it is, and what a crash left half made is completed.
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

// What Initialise made, as paths; empty when everything was there.
using MadeFiles = std::vector<std::string>;

// The server certificate is for localhost, 127.0.0.1, ::1 and `tls_names`; without `tls_names` the server has one from
// elsewhere, and neither it nor an authority is made. A token is made when no operator token is
// live, so that whoever may read the data directory can always get back in. DATA_LOSS when a file is missing
// that cannot be made again without breaking what others trust.
absl::StatusOr<MadeFiles> Initialise(const DataDirectory& directory, Database& database,
                                     const std::optional<std::vector<std::string>>& tls_names, absl::Time now,
                                     RandomSource& random);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_INITIALISE_H_
