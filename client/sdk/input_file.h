#ifndef DPAR_CLIENT_SDK_INPUT_FILE_H_
#define DPAR_CLIENT_SDK_INPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// INVALID_FIELD unless `path` is a regular file that can be read. `field` is the argument's name.
absl::Status CheckInputFile(absl::string_view field, const std::string& path);

// A key, a token or a certificate. The errors of CheckInputFile; INVALID_FIELD also for a file above 1 MiB.
absl::StatusOr<std::string> ReadSmallFile(absl::string_view field, const std::string& path);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_INPUT_FILE_H_
