// Logs: one line an event on stderr, without anything that depends on private data.
#ifndef DPAR_SERVER_OBSERVE_LOG_H_
#define DPAR_SERVER_OBSERVE_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace dpar {

// Levels that --log-level takes, for its help text.
inline constexpr absl::string_view kLogLevels = "trace, debug, info, warn or error";

// Whether `level` is one of them.
absl::Status ValidateLogLevel(absl::string_view level);

// Sets up spdlog's default logger. Called once, before any thread starts.
absl::Status SetUpLogging(absl::string_view level);

// One call that was answered.
struct CallRecord {
  absl::string_view method;  // for example dpar.v1.DatasetService/GetDataset
  absl::string_view code;    // for example OK, NOT_FOUND
  absl::string_view reason;  // of the ErrorInfo; empty when there is none
  absl::string_view token;   // the token's name; empty when the call was not authenticated
  absl::Duration duration;
};

// Writes the record at level info. Request fields, messages and metadata of errors stay out: they may quote a file.
void LogCall(const CallRecord& record);

// An error whose own message the caller did not get. The message is written only when the error carries a reason:
// then it was made by this program and quotes no data.
void LogFault(absl::string_view method, const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_LOG_H_
