// Where jobs that run in this process say how far they are, and whoever watches them reads it. Every second or so the
// worker copies it to the store, for the watchers of other servers.
#ifndef DPAR_SERVER_WORKER_PROGRESS_H_
#define DPAR_SERVER_WORKER_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Public counters of one job.
struct Progress {
  std::string stage;
  int64_t completed = 0;
  int64_t total = 0;
  absl::Time stage_start;
  double epsilon_so_far = 0;
};

// As it stands in the store; nothing for nothing.
std::optional<v1::JobProgress> ToProto(const std::optional<Progress>& progress);
Progress FromProto(const v1::JobProgress& stored);

// Thread-safe.
class ProgressBoard {
 public:
  // Told of every stage that a job of this process leaves, at its end too, and how long it was in it.
  using StageObserver = std::function<void(const std::string& stage, absl::Duration took)>;
  // Called with the name of every job that changed; with an empty one when any may have.
  using Listener = std::function<void(const std::string& job)>;

  explicit ProgressBoard(StageObserver observer = nullptr) : observer_(std::move(observer)) {}

  // Replaces a job's progress.
  void Update(const std::string& job, const Progress& progress) ABSL_LOCKS_EXCLUDED(mutex_);
  // Says that a job's stored state changed.
  void Touch(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets a job that ended.
  void Remove(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // What is known of a job that runs here.
  std::optional<Progress> Get(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `listener` after every change from now on, from the thread that made it and one call at a time. It must be
  // quick and must not come back here. Nothing is called once this returns for an empty listener.
  void Listen(Listener listener) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Nothing is told of a stage that goes on.
  void TellOfStage(const std::optional<Progress>& before, const std::optional<Progress>& after) const;
  void Tell(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StageObserver observer_;
  absl::Mutex mutex_;
  Listener listener_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Progress> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_PROGRESS_H_
