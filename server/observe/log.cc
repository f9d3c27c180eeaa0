#include "server/observe/log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

// spdlog takes an unknown name for "off", so names are checked here first.
constexpr std::array<absl::string_view, 5> kLevels = {"trace", "debug", "info", "warn", "error"};
constexpr std::array<absl::string_view, 2> kFormats = {"text", "json"};

template <size_t n>
absl::Status ValidateName(absl::string_view field, absl::string_view shown, const std::array<absl::string_view, n>& all,
                          absl::string_view allowed, absl::string_view name) {
  return std::find(all.begin(), all.end(), name) != all.end()
             ? absl::OkStatus()
             : InvalidField(field, absl::StrCat(shown, " must be ", allowed, ", got '", name, "'"));
}

std::string Clean(absl::string_view text) {
  std::string clean(text);
  std::replace_if(
      clean.begin(), clean.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f; }, '?');
  return clean;
}

struct Field {
  absl::string_view key;
  std::variant<absl::string_view, double> value;
};
using Fields = std::vector<Field>;

std::string Text(const std::string& time, absl::string_view level, absl::string_view message, const Fields& fields) {
  std::string text = absl::StrCat(time, " ", level, " ", Clean(message));
  for (const auto& [key, value] : fields) {
    const auto* const word = std::get_if<absl::string_view>(&value);
    absl::StrAppend(&text, " ", key, "=",
                    word == nullptr ? absl::StrFormat("%.1f", std::get<double>(value))
                    : word->empty() ? "-"
                                    : Clean(*word));
  }
  return text;
}

std::string Json(const std::string& time, absl::string_view level, absl::string_view message, const Fields& fields) {
  nlohmann::ordered_json object = {{"time", time}, {"level", std::string(level)}, {"message", Clean(message)}};
  for (const auto& [key, value] : fields) {
    const auto* const word = std::get_if<absl::string_view>(&value);
    if (word == nullptr) {
      object[std::string(key)] = std::round(std::get<double>(value) * 10) / 10;
    } else if (!word->empty()) {
      object[std::string(key)] = Clean(*word);
    }
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class LineSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  LineSink(bool json, std::ostream& out) : json_(json), out_(out) {}

  void Write(spdlog::level::level_enum level, absl::string_view message, const Fields& fields) {
    const std::lock_guard<std::mutex> lock(mutex_);
    WriteLine(absl::Now(), level, message, fields);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    WriteLine(absl::FromChrono(message.time), message.level, {message.payload.data(), message.payload.size()}, {});
  }
  void flush_() override { out_.flush(); }

 private:
  void WriteLine(absl::Time time, spdlog::level::level_enum level, absl::string_view message, const Fields& fields) {
    const std::string stamp = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
    const spdlog::string_view_t name = spdlog::level::to_string_view(level);
    const absl::string_view shown(name.data(), name.size());
    out_.clear();  // a write that failed, as on a full disk, must not silence the next
    out_ << absl::StrCat((json_ ? Json : Text)(stamp, shown, message, fields), "\n") << std::flush;
  }

  const bool json_;
  std::ostream& out_;
};

// spdlog takes texts only, so lines with fields bypass it.
void Log(spdlog::level::level_enum level, absl::string_view message, const Fields& fields) {
  const spdlog::logger& logger = *spdlog::default_logger_raw();
  for (const spdlog::sink_ptr& sink : logger.sinks()) {
    auto* const lines = dynamic_cast<LineSink*>(sink.get());
    if (lines != nullptr && logger.should_log(level)) {
      lines->Write(level, message, fields);
    }
  }
}

}  // namespace

absl::Status ValidateLogLevel(absl::string_view level) {
  return ValidateName("log_level", "log level", kLevels, kLogLevels, level);
}

absl::Status ValidateLogFormat(absl::string_view format) {
  return ValidateName("log_format", "log format", kFormats, kLogFormats, format);
}

spdlog::sink_ptr MakeLogSink(absl::string_view format, std::ostream& out) {
  return std::make_shared<LineSink>(format == "json", out);
}

void SetUpLogging(absl::string_view level, absl::string_view format) {
  auto logger = std::make_shared<spdlog::logger>("dpard", MakeLogSink(format, std::cerr));
  logger->set_level(spdlog::level::from_str(std::string(level)));
  spdlog::set_default_logger(std::move(logger));
}

void LogCall(const CallRecord& record) {
  Log(spdlog::level::info, "call",
      {{"method", record.method},
       {"code", record.code},
       {"reason", record.reason},
       {"token", record.token},
       {"request_id", record.request_id},
       {"ms", absl::ToDoubleMilliseconds(record.duration)}});
}

void LogFault(absl::string_view method, absl::string_view request_id, const absl::Status& status) {
  const bool judged = GetErrorInfo(status).has_value();
  const std::string code = absl::StatusCodeToString(status.code());
  Log(spdlog::level::err, "fault",
      {{"method", method},
       {"code", code},
       {"request_id", request_id},
       {"cause", judged ? status.message() : "(withheld: no reason)"}});
}

}  // namespace dpar
