#ifndef DPAR_SERVER_UPLOADS_CHECK_BOARD_H_
#define DPAR_SERVER_UPLOADS_CHECK_BOARD_H_

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "core/stage.h"
#include "dpar/v1/dataset.pb.h"
#include "server/fair_line.h"

namespace dpar {

// Thread-safe. Outlives its checks. A checked graph is in memory, so one check runs at a time; tenants take turns.
class CheckBoard {
 public:
  // Nothing when no check of the upload runs on this server.
  [[nodiscard]] std::optional<v1::UploadCheck> Find(const std::string& upload) const ABSL_LOCKS_EXCLUDED(mutex_);

  class Check;

 private:
  void Show(const std::string& upload, const std::string& stage, double fraction) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, v1::UploadCheck> shown_ ABSL_GUARDED_BY(mutex_);
  // Uploads are limited for each tenant, and calls in all.
  FairLine line_{1, std::numeric_limits<size_t>::max()};
};

// On the board while it lives; one at a time for each upload.
class CheckBoard::Check {
 public:
  // `wanted` says whether a caller still waits; called by one thread at a time.
  Check(CheckBoard& board, std::string upload, absl::Time start, std::function<bool()> wanted);
  ~Check();
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;

  // Waits for its turn. CANCELLED soon when no longer wanted.
  absl::Status AwaitTurn() ABSL_LOCKS_EXCLUDED(mutex_);
  // Shows a stage and its progress; the report returns whether the check is still wanted. The check outlives it.
  StageReport Stage(const std::string& stage);
  // CANCELLED, finally, once no caller waits.
  absl::Status Wanted() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool Report(const std::string& stage, double fraction) ABSL_LOCKS_EXCLUDED(mutex_);

  CheckBoard& board_;
  const std::string upload_;
  FairLine::Turn turn_;
  Mutex mutex_;
  const std::function<bool()> wanted_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_CHECK_BOARD_H_
