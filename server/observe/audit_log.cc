#include "server/observe/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {
namespace {

// Above every resource name: three ids of at most 63 characters and the words between.
constexpr size_t kMaxResource = 256;

absl::Status Failed(absl::string_view action, const std::string& path, int error) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   absl::StrCat("cannot ", action, " the audit log ", path, ": ", std::strerror(error)));
}

int OpenFile(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

// A refused request may have any text as a name.
absl::string_view ResourceOrNone(absl::string_view text) {
  const bool plausible = text.size() <= kMaxResource && std::all_of(text.begin(), text.end(), [](char c) {
                           const auto byte = static_cast<unsigned char>(c);
                           return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '-' || c == '/';
                         });
  return plausible ? text : "(malformed)";
}

std::string ToLine(const AuditRecord& record) {
  nlohmann::ordered_json object = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", record.time, absl::UTCTimeZone())},
      {"request_id", std::string(record.request_id)},
      {"actor", std::string(record.actor)},
      {"action", std::string(record.action)},
      {"resource", std::string(ResourceOrNone(record.resource))},
      {"code", std::string(record.code)},
      {"reason", std::string(record.reason)},
      {"peer", std::string(record.peer)},
  };
  if (!record.note.empty()) {
    object["note"] = std::string(record.note);
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path) {
  const int descriptor = OpenFile(path);
  if (descriptor < 0) {
    return Failed("open", path, errno);
  }
  return std::unique_ptr<AuditLog>(new AuditLog(path, descriptor));
}

AuditLog::~AuditLog() { close(descriptor_); }

absl::Status AuditLog::Write(const AuditRecord& record) {
  const std::string line = ToLine(record);
  const MutexLock lock(&mutex_);
  const std::string bytes = torn_ ? absl::StrCat("\n", line) : line;
  ssize_t written = 0;
  do {
    written = write(descriptor_, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(bytes.size())) {
    torn_ = false;
    return absl::OkStatus();
  }
  const int error = written < 0 ? errno : ENOSPC;
  torn_ = torn_ || written > 0;
  return Failed("write", path_, error);
}

absl::Status AuditLog::Reopen() {
  const int descriptor = OpenFile(path_);
  if (descriptor < 0) {
    return Failed("reopen", path_, errno);
  }
  const MutexLock lock(&mutex_);
  close(std::exchange(descriptor_, descriptor));
  torn_ = false;
  return absl::OkStatus();
}

}  // namespace dpar
