#ifndef DPAR_SERVER_STORE_UNAVAILABLE_H_
#define DPAR_SERVER_STORE_UNAVAILABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/error.h"

namespace dpar {

// Metadata key of errors that name hosts, users or files: for the log, never for a caller.
inline constexpr char kForTheLog[] = "for_the_log";

inline absl::Status StoreUnavailable(absl::string_view words) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, words, {{kForTheLog, "true"}});
}

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_UNAVAILABLE_H_
