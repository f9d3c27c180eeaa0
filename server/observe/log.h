// Logs: one line an event on stderr, as text or as JSON, without anything that depends on private data.
#ifndef DPAR_SERVER_OBSERVE_LOG_H_
#define DPAR_SERVER_OBSERVE_LOG_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spdlog/common.h"

namespace dpar {

// Levels that --log-level takes, and formats that --log-format does, for their help texts.
inline constexpr absl::string_view kLogLevels = "trace, debug, info, warn or error";
inline constexpr absl::string_view kLogFormats = "text or json";

// Whether `level` and `format` are one of them.
absl::Status ValidateLogLevel(absl::string_view level);
absl::Status ValidateLogFormat(absl::string_view format);

// Writes spdlog's lines and those below to `out`, which outlives it. Text: time, level, message, then key=value. JSON:
// one object a line with the keys time, level and message, then the line's own. Control characters never get through,
// so that a line is a line.
spdlog::sink_ptr MakeLogSink(absl::string_view format, std::ostream& out);

// Sets up spdlog's default logger, with a level and a format that are valid. Called once, before any thread starts.
void SetUpLogging(absl::string_view level, absl::string_view format);

// One call that was answered.
struct CallRecord {
  absl::string_view method;      // for example DatasetService/GetDataset
  absl::string_view code;        // for example OK, NOT_FOUND
  absl::string_view reason;      // of the ErrorInfo; empty when there is none
  absl::string_view token;       // the token's name; empty when the call was not authenticated
  absl::string_view request_id;  // the caller's own, or one that the server made
  absl::Duration duration;
};

// Writes the record at level info. Request fields, messages and metadata of errors stay out: they may quote a file.
void LogCall(const CallRecord& record);

// An error whose own message the caller did not get. The message is written only when the error carries a reason:
// then it was made by this program and quotes no data.
void LogFault(absl::string_view method, absl::string_view request_id, const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_LOG_H_
