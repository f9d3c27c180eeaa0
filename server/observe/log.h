// One log line an event on stderr, as text or JSON; nothing depends on private data.
#ifndef DPAR_SERVER_OBSERVE_LOG_H_
#define DPAR_SERVER_OBSERVE_LOG_H_

#include <ostream>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spdlog/common.h"

namespace dpar {

inline constexpr absl::string_view kLogLevels = "trace, debug, info, warn or error";
inline constexpr absl::string_view kLogFormats = "text or json";

absl::Status ValidateLogLevel(absl::string_view level);
absl::Status ValidateLogFormat(absl::string_view format);

// A sink for spdlog's lines and those below; `out` outlives it. Text: time, level, message, key=value. JSON: an object
// with time, level, message and the line's own keys. Escapes control characters, so an event is one line.
spdlog::sink_ptr MakeLogSink(absl::string_view format, std::ostream& out);

// Sets up spdlog's default logger; the arguments are valid. Called once, before any thread starts.
void SetUpLogging(absl::string_view level, absl::string_view format);

struct CallRecord {
  absl::string_view method;      // for example DatasetService/GetDataset
  absl::string_view code;        // for example OK, NOT_FOUND
  absl::string_view reason;      // of the ErrorInfo; empty when there is none
  absl::string_view token;       // the token's name; empty when the call was not authenticated
  absl::string_view request_id;  // the caller's own, or one that the server made
  absl::Duration duration;
};

// Logs at level info, without request fields, error messages and metadata: they may quote a file.
void LogCall(const CallRecord& record);

// Logs an error whose message the caller did not get. The message is written only when the error has a reason: then
// this program made it and it quotes no data.
void LogFault(absl::string_view method, absl::string_view request_id, const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_LOG_H_
