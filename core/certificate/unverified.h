// What a certificate says, whoever signed it: for questions whose answer a forger gains nothing by.
#ifndef DPAR_CORE_CERTIFICATE_UNVERIFIED_H_
#define DPAR_CORE_CERTIFICATE_UNVERIFIED_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// dataset.digest in lower-case hex, or INVALID_ARGUMENT. A forgery only turns a warning off.
absl::StatusOr<std::string> DatasetDigest(absl::string_view envelope);

// The names of the model's files, or INVALID_ARGUMENT. Those that are not a plain file name are left out.
absl::StatusOr<std::vector<std::string>> SubjectNames(absl::string_view envelope);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_UNVERIFIED_H_
