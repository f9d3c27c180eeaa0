// Errors with a reason. Every error that can reach a caller is made by MakeError, so that it carries a named reason and
// metadata; server/services/status.h puts them on the wire unchanged.
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
// Key of the absl::Status payload that holds a serialised google.rpc.ErrorInfo.
inline constexpr absl::string_view kErrorInfoTypeUrl = "type.googleapis.com/google.rpc.ErrorInfo";

// An error of this code, with the reason as ErrorInfo. `message` says what happened, why, and what to do next; it must
// hold nothing that depends on private data unless the caller is the uploader of that data.
absl::Status MakeError(absl::StatusCode code, v1::ErrorReason reason, absl::string_view message,
                       const std::map<std::string, std::string>& metadata = {});

// INVALID_ARGUMENT / INVALID_FIELD for a request field or a parameter.
absl::Status InvalidField(absl::string_view field, absl::string_view message);

// The ErrorInfo of an error made by MakeError; nothing for other errors.
std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_CORE_ERROR_H_
