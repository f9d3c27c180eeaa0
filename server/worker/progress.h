// Where jobs that run in this process say how far they are, and watchers read it. Every second or so the worker copies
// it to the store, for the watchers of other servers.
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

  explicit ProgressBoard(StageObserver observer = nullptr) : observer_(std::move(observer)) {}

  // Replaces a job's progress and wakes its watchers.
  void Update(const std::string& job, const Progress& progress) ABSL_LOCKS_EXCLUDED(mutex_);
  // Wakes a job's watchers: its stored state changed.
  void Touch(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets a job that ended, and wakes its watchers.
  void Remove(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  // What is known of a job that runs here.
  std::optional<Progress> Get(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Snapshot {
    int64_t sequence = 0;  // rises with every change of any job
    std::optional<Progress> progress;
  };
  // Waits until the job changed after `after_sequence`, or the deadline, and returns what is known.
  Snapshot Wait(const std::string& job, int64_t after_sequence, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets every waiter go, now and later: the server stops.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    int64_t sequence = 0;
    std::optional<Progress> progress;
  };
  // Nothing is told of a stage that goes on.
  void TellOfStage(const std::optional<Progress>& before, const std::optional<Progress>& after) const;

  const StageObserver observer_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  bool shutdown_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_PROGRESS_H_
