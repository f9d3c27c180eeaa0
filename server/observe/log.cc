#include "server/observe/log.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

// spdlog takes an unknown name for "off", so names are checked against this list first.
constexpr std::array<absl::string_view, 5> kLevels = {"trace", "debug", "info", "warn", "error"};
constexpr std::array<absl::string_view, 2> kFormats = {"text", "json"};
constexpr absl::string_view kJson = "json";

// spdlog carries a line as one text. Fields stand behind its message, each after kField, a key and its value with
// kText or kNumber between them. No message and no value holds these characters: Clean takes them out.
constexpr char kField = '\x1f';
constexpr char kText = '\x1e';
constexpr char kNumber = '\x1d';

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

std::string TextField(absl::string_view key, absl::string_view value) {
  return absl::StrCat(std::string(1, kField), key, std::string(1, kText), Clean(value));
}

std::string NumberField(absl::string_view key, double value) {
  return absl::StrCat(std::string(1, kField), key, std::string(1, kNumber), absl::StrFormat("%.1f", value));
}

// A line taken apart.
struct Field {
  std::string key;
  std::string value;
  bool is_number = false;
};
struct Line {
  std::string message;
  std::vector<Field> fields;
};

Line ParseLine(absl::string_view payload) {
  Line line;
  const std::vector<absl::string_view> parts = absl::StrSplit(payload, kField);
  line.message = Clean(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t middle = parts[i].find_first_of(std::string{kText, kNumber});
    if (middle != absl::string_view::npos) {
      line.fields.push_back(
          {Clean(parts[i].substr(0, middle)), Clean(parts[i].substr(middle + 1)), parts[i][middle] == kNumber});
    }
  }
  return line;
}

std::string LevelName(const spdlog::details::log_msg& message) {
  const spdlog::string_view_t name = spdlog::level::to_string_view(message.level);
  return {name.data(), name.size()};
}

class Formatter : public spdlog::formatter {
 public:
  explicit Formatter(bool json) : json_(json) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& destination) override {
    const std::string time =
        absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time), absl::UTCTimeZone());
    const Line line = ParseLine({message.payload.data(), message.payload.size()});
    const std::string text = json_ ? Json(time, LevelName(message), line) : Text(time, LevelName(message), line);
    destination.append(text.data(), text.data() + text.size());
  }

  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<Formatter>(json_); }

 private:
  static std::string Text(const std::string& time, const std::string& level, const Line& line) {
    std::string text = absl::StrCat(time, " ", level, " ", line.message);
    for (const Field& field : line.fields) {
      absl::StrAppend(&text, " ", field.key, "=", field.value.empty() ? "-" : field.value);
    }
    return text + "\n";
  }

  static std::string Json(const std::string& time, const std::string& level, const Line& line) {
    nlohmann::ordered_json object = {{"time", time}, {"level", level}, {"message", line.message}};
    for (const Field& field : line.fields) {
      if (field.is_number) {
        object[field.key] = std::stod(field.value);
      } else if (!field.value.empty()) {
        object[field.key] = field.value;
      }
    }
    // Bytes that are no UTF-8 are replaced, not refused.
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  const bool json_;
};

}  // namespace

absl::Status ValidateLogLevel(absl::string_view level) {
  return ValidateName("log_level", "log level", kLevels, kLogLevels, level);
}

absl::Status ValidateLogFormat(absl::string_view format) {
  return ValidateName("log_format", "log format", kFormats, kLogFormats, format);
}

std::unique_ptr<spdlog::formatter> MakeLogFormatter(absl::string_view format) {
  return std::make_unique<Formatter>(format == kJson);
}

absl::Status SetUpLogging(absl::string_view level, absl::string_view format) {
  if (absl::Status status = ValidateLogLevel(level); !status.ok()) {
    return status;
  }
  if (absl::Status status = ValidateLogFormat(format); !status.ok()) {
    return status;
  }
  auto logger = std::make_shared<spdlog::logger>("dpard", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(MakeLogFormatter(format));
  logger->set_level(spdlog::level::from_str(std::string(level)));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void LogCall(const CallRecord& record) {
  spdlog::info("call{}{}{}{}{}{}", TextField("method", record.method), TextField("code", record.code),
               TextField("reason", record.reason), TextField("token", record.token),
               TextField("request_id", record.request_id),
               NumberField("ms", absl::ToDoubleMilliseconds(record.duration)));
}

void LogFault(absl::string_view method, absl::string_view request_id, const absl::Status& status) {
  const bool judged = GetErrorInfo(status).has_value();
  spdlog::error("fault{}{}{}{}", TextField("method", method),
                TextField("code", absl::StatusCodeToString(status.code())), TextField("request_id", request_id),
                TextField("cause", judged ? status.message() : "(withheld: no reason)"));
}

}  // namespace dpar
