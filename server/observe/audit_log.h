// One JSON line for every call, refused ones too, that changes something or hands out a model, certificate or secret.
#ifndef DPAR_SERVER_OBSERVE_AUDIT_LOG_H_
#define DPAR_SERVER_OBSERVE_AUDIT_LOG_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/mutex.h"

namespace dpar {

struct AuditRecord {
  absl::Time time;  // of the answer
  absl::string_view request_id;
  absl::string_view actor;     // the token's name; empty when the call was not authenticated
  absl::string_view action;    // the method
  absl::string_view resource;  // as the caller or the server named it; what is no resource name is not written
  absl::string_view note;      // fixed words of this program; empty for most
  absl::string_view code;
  absl::string_view reason;
  absl::string_view peer;  // address
};

// Thread-safe. Several processes may append to one file on a local file system: each line is one write.
class AuditLog {
 public:
  // Makes the file for its owner only unless it exists. UNAVAILABLE on failure.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // UNAVAILABLE when the line was not written in full.
  absl::Status Write(const AuditRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Opens the path again after log rotation. On an error the old file stays in use.
  absl::Status Reopen() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AuditLog(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  const std::string path_;
  Mutex mutex_;
  int descriptor_ ABSL_GUARDED_BY(mutex_);
  // The last line is incomplete: a newline goes before the next.
  bool torn_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_AUDIT_LOG_H_
