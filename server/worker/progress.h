// Progress of this process's jobs, for watchers. The worker stores a copy about every second, for other servers.
#ifndef DPAR_SERVER_WORKER_PROGRESS_H_
#define DPAR_SERVER_WORKER_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

struct Progress {
  std::string stage;
  int64_t completed = 0;
  int64_t total = 0;
  absl::Time stage_start;
  double epsilon_so_far = 0;
};

std::optional<v1::JobProgress> ToProto(const std::optional<Progress>& progress);
Progress FromProto(const v1::JobProgress& stored);

// Thread-safe.
class ProgressBoard {
 public:
  // Called when a job leaves a stage or ends, with its last progress there and the time it spent there.
  using StageObserver = std::function<void(const Progress& left, absl::Duration took)>;
  // Called with each changed job's name; with an empty one when any may have changed.
  using Listener = std::function<void(const std::string& job)>;

  explicit ProgressBoard(StageObserver observer = nullptr) : observer_(std::move(observer)) {}

  void Update(const std::string& job, const Progress& progress) ABSL_LOCKS_EXCLUDED(mutex_);
  // A job's stored state changed.
  void Touch(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<Progress> Get(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `listener` after every change, from the thread that made it, one call at a time. It must be quick and not
  // call back. Nothing is called once this returns for an empty listener.
  void Listen(Listener listener) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Reports only a change of stage.
  void TellOfStage(const std::optional<Progress>& before, const std::optional<Progress>& after) const;
  void Tell(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StageObserver observer_;
  Mutex mutex_;
  Listener listener_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Progress> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_PROGRESS_H_
