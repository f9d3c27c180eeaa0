// Errors with a named reason. All that can reach a caller come from MakeError; server/services/status.h forwards them.
#ifndef DPAR_CORE_ERROR_H_
#define DPAR_CORE_ERROR_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "dpar/v1/errors.pb.h"
#include "google/rpc/error_details.pb.h"

namespace dpar {

inline constexpr absl::string_view kErrorDomain = "dpar.v1";
inline constexpr absl::string_view kErrorInfoTypeUrl = "type.googleapis.com/google.rpc.ErrorInfo";

// `message`: what happened, why, what to do next; free of private data unless the caller uploaded that data.
absl::Status MakeError(absl::StatusCode code, v1::ErrorReason reason, absl::string_view message,
                       const std::map<std::string, std::string>& metadata = {});

// INVALID_ARGUMENT / INVALID_FIELD for a request field or a parameter.
absl::Status InvalidField(absl::string_view field, absl::string_view message);

// nullopt for errors that MakeError did not make.
std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_CORE_ERROR_H_
