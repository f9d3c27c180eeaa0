// One hub for everybody who watches a job.
//
// A watcher is an entry here and a call of gRPC's callback API; it has no thread. One thread looks at a job when it
// changed, at most ten times a second, and otherwise every second: it reads the job once, makes one message of it, and
// hands that to every watcher who wants it. A watcher whose last message is still on its way is left out, and gets the
// newest state when it has taken that one, so that nothing queues up behind a slow caller.
#ifndef DPAR_SERVER_SERVICES_WATCH_HUB_H_
#define DPAR_SERVER_SERVICES_WATCH_HUB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "server/store/database.h"
#include "server/witness/witness.h"
#include "server/worker/progress.h"

namespace dpar {

// Where a watcher's messages go. The hub calls it without holding a lock, one call at a time but for Cancel, and never
// after End.
class WatchSink {
 public:
  WatchSink() = default;
  WatchSink(const WatchSink&) = delete;
  WatchSink& operator=(const WatchSink&) = delete;
  virtual ~WatchSink() = default;

  // Starts to send a message. WatchHub::Sent follows when it was taken, or when it never will be.
  virtual void Send(std::shared_ptr<const v1::WatchJobResponse> message) = 0;
  // Gives up a message that is not taken: Sent follows.
  virtual void Cancel() = 0;
  // Ends the stream.
  virtual void End(const absl::Status& status) = 0;
};

// One watcher. Made before it is admitted, so that its caller can go away meanwhile.
class Watch {
 public:
  explicit Watch(WatchSink& sink) : sink_(sink) {}

 private:
  friend class WatchHub;

  WatchSink& sink_;
  // What follows is the hub's, under its mutex.
  std::string job_;
  int64_t sequence_ = 0;                         // of the last message, or what the caller has seen
  int64_t version_ = 0;                          // of the state that was sent last; 0 before the first
  absl::Time last_sent_ = absl::InfinitePast();  // when that was
  bool sending_ = false;                         // it is still on its way
  bool behind_ = false;                          // and there was something newer meanwhile
  bool terminal_ = false;                        // it is the last
  std::optional<absl::Status> end_;              // how it ends, once it is to
  int holds_ = 1;                                // reasons not to end yet: being admitted, sending, being cancelled
};

// Thread-safe. Database and board outlive it; it takes the board's listener for itself. Every watch that was admitted
// is ended before it is destroyed, which the end of a gRPC server sees to.
class WatchHub {
 public:
  // A watcher that has not taken a message for as long as `patience` (max_idle_seconds) is cancelled. Nobody is told
  // how a job ended before `witness` has marked what it spent.
  WatchHub(Database& database, ProgressBoard& board, Witness& witness, absl::Duration patience);
  ~WatchHub();
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // Starts the thread.
  void Start();
  // Ends every watch with UNAVAILABLE, now and later.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Admits a watch: it gets the job's present state soon, then every change and at least one message every ten
  // seconds, all with sequence numbers above `after_sequence`, and the terminal one last. Sequence numbers are
  // microseconds since 1970, so that they also rise over a restart. NOT_FOUND ends it when there is no such job.
  void Join(const std::shared_ptr<Watch>& watch, const std::string& job, int64_t after_sequence)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a watch that is not admitted.
  void Refuse(const std::shared_ptr<Watch>& watch, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller has gone away, admitted or not.
  void Leave(const std::shared_ptr<Watch>& watch) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last message was taken, or cannot be.
  void Sent(const std::shared_ptr<Watch>& watch, bool taken) ABSL_LOCKS_EXCLUDED(mutex_);

  // Looks at the jobs that are due at `now` and returns when the next one is. The thread does nothing else; a test can
  // do it in the thread's place.
  absl::Time Look(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A job that somebody watches.
  struct Job {
    std::set<std::shared_ptr<Watch>> watches;
    v1::WatchJobResponse state;  // as last seen
    int64_t version = 0;         // rises when that changes
    absl::Time last_look = absl::InfinitePast();
    absl::Time due = absl::InfiniteFuture();
  };
  using JobPointer = std::shared_ptr<Job>;
  // What is to be done to sinks once the mutex is free: gRPC may call back from within.
  struct Effects {
    std::vector<std::pair<std::shared_ptr<Watch>, std::shared_ptr<const v1::WatchJobResponse>>> sends;
    std::vector<std::shared_ptr<Watch>> cancels;
    std::vector<std::pair<std::shared_ptr<Watch>, absl::Status>> ends;
  };
  using States = std::map<std::string, absl::StatusOr<v1::WatchJobResponse>>;

  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Changed(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<std::string, JobPointer> TakeDue(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  States Read(const std::map<std::string, JobPointer>& jobs, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Tell(Job& job, const absl::StatusOr<v1::WatchJobResponse>& state, absl::Time now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellBusy(const std::shared_ptr<Watch>& watch, int64_t version, absl::Time now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Schedule(const std::string& name, Job& job, absl::Time when) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Hasten(const std::string& name, Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWith(const std::shared_ptr<Watch>& watch, const absl::Status& status, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(const std::shared_ptr<Watch>& watch, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Perform(Effects effects) ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  ProgressBoard& board_;
  Witness& witness_;
  const absl::Duration patience_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, JobPointer> jobs_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> agenda_ ABSL_GUARDED_BY(mutex_);  // when which job is due
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_WATCH_HUB_H_
