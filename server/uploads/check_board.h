// Checks of whole files: one at a time, visible while they run, and stopped when nobody waits for them any more.
#ifndef DPAR_SERVER_UPLOADS_CHECK_BOARD_H_
#define DPAR_SERVER_UPLOADS_CHECK_BOARD_H_

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/stage.h"
#include "dpar/v1/dataset.pb.h"

namespace dpar {

// Thread-safe. Outlives its checks.
//
// A graph is in memory while its file is checked, so one check runs at a time, and the others wait in the order in
// which they came.
class CheckBoard {
 public:
  // How far the check of an upload is; nothing when none runs on this server.
  [[nodiscard]] std::optional<v1::UploadCheck> Find(const std::string& upload) const ABSL_LOCKS_EXCLUDED(mutex_);

  class Check;

 private:
  void Show(const std::string& upload, const std::string& stage, double fraction) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, v1::UploadCheck> shown_ ABSL_GUARDED_BY(mutex_);
  std::list<const Check*> turns_ ABSL_GUARDED_BY(mutex_);  // the first one runs
};

// One check, on the board for as long as it lives. Of one upload there is one at a time.
class CheckBoard::Check {
 public:
  // `wanted` says whether somebody still waits for the result; never asked by two threads at once.
  Check(CheckBoard& board, std::string upload, absl::Time start, std::function<bool()> wanted);
  ~Check();
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;

  // Waits until the checks before it have ended. CANCELLED when it is not wanted any more; that is noticed within a
  // tenth of a second.
  absl::Status AwaitTurn() ABSL_LOCKS_EXCLUDED(mutex_);
  // Shows the stage, and what is done of it whenever it is called; its answer is whether the check is still wanted.
  // The check outlives it.
  StageReport Stage(const std::string& stage);
  // CANCELLED once nobody waits; that is final.
  absl::Status Wanted() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool Report(const std::string& stage, double fraction) ABSL_LOCKS_EXCLUDED(mutex_);

  CheckBoard& board_;
  const std::string upload_;
  absl::Mutex mutex_;
  const std::function<bool()> wanted_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_CHECK_BOARD_H_
