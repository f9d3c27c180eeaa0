// One thread for all watchers of jobs. It reads a job when it changed, at most ten times a second, else every second,
// and sends one message to all its watchers, which are calls of gRPC's callback API and hold no thread. A watcher that
// has not taken its last message is skipped and later gets the newest state, so nothing queues up behind a slow caller.
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
#include "absl/time/time.h"
#include "core/mutex.h"
#include "dpar/v1/training.pb.h"
#include "server/periodic.h"
#include "server/store/database.h"
#include "server/witness/witness.h"
#include "server/worker/progress.h"

namespace dpar {

// A watcher's message stream. The hub calls it without a lock, one call at a time except Cancel, and never after End.
class WatchSink {
 public:
  WatchSink() = default;
  WatchSink(const WatchSink&) = delete;
  WatchSink& operator=(const WatchSink&) = delete;
  virtual ~WatchSink() = default;

  // Starts sending. WatchHub::Sent follows when the message was taken or never will be.
  virtual void Send(std::shared_ptr<const v1::WatchJobResponse> message) = 0;
  // Gives up a message that is not taken: Sent follows.
  virtual void Cancel() = 0;
  virtual void End(const absl::Status& status) = 0;
};

class Watch {
 public:
  explicit Watch(WatchSink& sink) : sink_(sink) {}

 private:
  friend class WatchHub;

  // The hub reaches it through StateOf, which asks for the hub's mutex.
  struct State {
    std::string job;
    int64_t sequence = 0;                         // of the last message, or what the caller has seen
    int64_t version = 0;                          // of the state that was sent last; 0 before the first
    absl::Time last_sent = absl::InfinitePast();  // when that was
    bool sending = false;                         // it is still on its way
    bool behind = false;                          // and there was something newer meanwhile
    bool terminal = false;                        // it is the last
    std::optional<absl::Status> end;              // how it ends, once it is to
    int holds = 1;                                // reasons not to end yet: being admitted, sending, being cancelled
  };

  WatchSink& sink_;
  State state_;
};

// Thread-safe. Database and board outlive it; it takes the board's listener. Every watch must end before it is
// destroyed.
class WatchHub {
 public:
  // Cancels watchers that take nothing for `patience` (max_idle_seconds). A job's end is told only after it is marked.
  WatchHub(Database& database, ProgressBoard& board, Witness& witness, absl::Duration patience);
  ~WatchHub();
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  void Start();
  // Ends every watch with UNAVAILABLE, now and later.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends the current state, every change, a message at least every ten seconds, and the terminal state last. Sequence
  // numbers, above `after_sequence`, are microseconds since 1970: they rise over restarts. NOT_FOUND: no such job.
  void Join(const std::shared_ptr<Watch>& watch, const std::string& job, int64_t after_sequence)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Refuse(const std::shared_ptr<Watch>& watch, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller left, admitted or not.
  void Leave(const std::shared_ptr<Watch>& watch) ABSL_LOCKS_EXCLUDED(mutex_);
  // The last message was taken, or cannot be.
  void Sent(const std::shared_ptr<Watch>& watch, bool taken) ABSL_LOCKS_EXCLUDED(mutex_);

  // Reads the jobs due at `now`, of a steady clock; returns when the next is due. Messages tell `time`, of the wall
  // clock. For the thread, or a test in its place.
  absl::Time Look(absl::Time now, absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Job {
    std::set<std::shared_ptr<Watch>> watches;
    v1::WatchJobResponse state;  // as last seen
    int64_t version = 0;         // rises when that changes
    absl::Time last_look = absl::InfinitePast();
    absl::Time due = absl::InfiniteFuture();
  };
  using JobPointer = std::shared_ptr<Job>;
  // Calls to sinks, made after the mutex is released: gRPC may call back from within.
  struct Effects {
    std::vector<std::pair<std::shared_ptr<Watch>, std::shared_ptr<const v1::WatchJobResponse>>> sends;
    std::vector<std::shared_ptr<Watch>> cancels;
    std::vector<std::pair<std::shared_ptr<Watch>, absl::Status>> ends;
  };
  using States = std::map<std::string, absl::StatusOr<v1::WatchJobResponse>>;

  Watch::State& StateOf(Watch& watch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return watch.state_; }
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Changed(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<std::string, JobPointer> TakeDue(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  States Read(const std::map<std::string, JobPointer>& jobs, absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);
  void Tell(Job& job, const absl::StatusOr<v1::WatchJobResponse>& state, absl::Time now, absl::Time time,
            Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool wake_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, JobPointer> jobs_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<absl::Time, std::string>> agenda_ ABSL_GUARDED_BY(mutex_);  // when which job is due
  std::thread thread_;
  std::unique_ptr<Periodic> waking_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_WATCH_HUB_H_
