// Runs jobs, several at once: the only room that joins core/train to the ledger and the queue.
#ifndef DPAR_SERVER_WORKER_WORKER_H_
#define DPAR_SERVER_WORKER_WORKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/certificate/signing_key.h"
#include "server/observe/metrics.h"
#include "server/queue/queue.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/witness/witness.h"
#include "server/worker/attempt.h"
#include "server/worker/outcome.h"
#include "server/worker/progress.h"

namespace dpar {

struct WorkerOptions {
  int max_attempts = 3;
  std::string device = "auto";   // "auto", "cpu", "cuda", "cuda:i"
  std::string owner = "worker";  // which server: for people who read the store
  int concurrent_jobs = 1;       // jobs at once
  int threads = 1;               // of each job
  int64_t max_running_jobs = 1;  // of a tenant, on all servers together
  int64_t total_bytes = 0;       // for all jobs of this server together
  absl::Duration lease = absl::Seconds(30);
  Metrics* metrics = nullptr;  // may be missing
  // Where what was posted is marked at once, so that nobody who asks for it has to wait; may be missing.
  Witness* witness = nullptr;
};

// One thread for each job that may run at once, and one that keeps their leases. Everything passed in outlives it.
class Worker {
 public:
  // `key` is asked for before every signature.
  Worker(Database& database, const DataDirectory& directory, SigningKeySource key, ProgressBoard& progress,
         WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Checks the device and starts the threads. On a store of its own, what a crash left RUNNING is taken back first; on
  // a shared one that comes when its lease expires. FAILED_PRECONDITION when the device is not there.
  absl::Status Start();
  // A job was queued, or its cancel requested; an empty name when it may have been any.
  void Notify(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops the running jobs, puts them back into the queue, and joins the threads.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Running {
    std::shared_ptr<Attempt> attempt;
    absl::Time lease_end;  // as far as this server knows
  };

  // A thread's loop: lease a job, run it, end it.
  void RunJobs();
  // Waits until `notices_` is not `seen`, or a while; what it is then.
  int64_t AwaitNotice(int64_t seen) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing when there is no job for this server now.
  absl::StatusOr<std::shared_ptr<Attempt>> LeaseNext() ABSL_LOCKS_EXCLUDED(lease_mutex_, mutex_);
  // Notes that a job was leased here.
  std::shared_ptr<Attempt> Admit(const StoredJob& job) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunJob(Attempt& attempt);
  // Has the store end the job as the attempt ended. True when its output was released.
  absl::StatusOr<bool> EndJob(const Attempt& attempt, const absl::StatusOr<JobOutput>& output);
  void RemoveFiles(const StoredJob& stored) const;
  void CountEnd(v1::Job::State state) const;
  void MarkSpend(const std::string& job) const;
  void Forget(const Attempt& attempt) ABSL_LOCKS_EXCLUDED(mutex_);

  // The keeper's life: renew leases, store progress, see cancels, take back jobs whose workers are gone.
  void KeepLeases();
  void RenewLeases() ABSL_LOCKS_EXCLUDED(mutex_);
  void StopCancelled() ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeBack(bool everyone);
  std::vector<Running> running() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  const DataDirectory& directory_;
  const SigningKeySource key_;
  ProgressBoard& progress_;
  const WorkerOptions options_;
  std::string device_;
  absl::Mutex lease_mutex_
      ABSL_ACQUIRED_BEFORE(mutex_);  // one thread leases at a time, so that no two count on the same memory
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool threads_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool check_cancels_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t notices_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t free_bytes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Running> running_ ABSL_GUARDED_BY(mutex_);  // by job
  std::vector<std::thread> threads_;
  std::thread keeper_;
};

// Removes model files that no output of the store stands for and no running attempt may be writing.
absl::Status SweepModels(Database& database, const DataDirectory& directory);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_WORKER_H_
