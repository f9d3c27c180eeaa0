// The error of a store that cannot be reached or cannot keep more.
#ifndef DPAR_SERVER_STORE_UNAVAILABLE_H_
#define DPAR_SERVER_STORE_UNAVAILABLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/error.h"

namespace dpar {

// In an error's metadata, for words that name hosts, users and files: they go to the log, never to a caller.
inline constexpr char kForTheLog[] = "for_the_log";

// UNAVAILABLE / SERVER_UNAVAILABLE with the engine's own words.
inline absl::Status StoreUnavailable(absl::string_view words) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, words, {{kForTheLog, "true"}});
}

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_UNAVAILABLE_H_
