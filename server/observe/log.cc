#include "server/observe/log.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

// spdlog takes an unknown name for "off", so names are checked against this list first.
constexpr absl::string_view kNames[] = {"trace", "debug", "info", "warn", "error"};
constexpr char kPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";

std::string OrDash(absl::string_view text) { return text.empty() ? "-" : std::string(text); }

}  // namespace

absl::Status ValidateLogLevel(absl::string_view level) {
  for (const absl::string_view name : kNames) {
    if (name == level) {
      return absl::OkStatus();
    }
  }
  return InvalidField("log_level", absl::StrCat("log level must be ", kLogLevels, ", got '", level, "'"));
}

absl::Status SetUpLogging(absl::string_view level) {
  if (absl::Status status = ValidateLogLevel(level); !status.ok()) {
    return status;
  }
  auto logger = std::make_shared<spdlog::logger>("dpard", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern(kPattern, spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(std::string(level)));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void LogCall(const CallRecord& record) {
  spdlog::info("call method={} code={} reason={} token={} ms={:.1f}", OrDash(record.method), OrDash(record.code),
               OrDash(record.reason), OrDash(record.token), absl::ToDoubleMilliseconds(record.duration));
}

void LogFault(absl::string_view method, const absl::Status& status) {
  const bool judged = GetErrorInfo(status).has_value();
  spdlog::error("fault method={} code={} message={}", OrDash(method), absl::StatusCodeToString(status.code()),
                judged ? std::string(status.message()) : "(withheld: no reason)");
}

}  // namespace dpar
