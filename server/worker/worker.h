// Runs jobs, several at once: the only room that joins core/train to ledger and queue.
#ifndef DPAR_SERVER_WORKER_WORKER_H_
#define DPAR_SERVER_WORKER_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/certificate/signing_key.h"
#include "core/mutex.h"
#include "server/observe/metrics.h"
#include "server/periodic.h"
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
  std::string device = "auto";   // "auto", "cpu", "cuda", "cuda:i"; private jobs run on the CPU whatever it is
  std::string owner = "worker";  // which server: for people who read the store
  int concurrent_jobs = 1;       // jobs at once
  int threads = 1;               // of each job
  int64_t max_running_jobs = 1;  // of a tenant, on all servers together
  int64_t total_bytes = 0;       // for all jobs of this server together
  absl::Duration lease = absl::Seconds(30);
  Metrics* metrics = nullptr;  // may be missing
  // Marks posts at once, so that callers do not wait for it; may be null.
  Witness* witness = nullptr;
};

// One thread for each concurrent job, and one that keeps leases. Arguments outlive it.
class Worker {
 public:
  // `key` is asked for before every signature.
  Worker(Database& database, const DataDirectory& directory, SigningKeySource key, ProgressBoard& progress,
         WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the threads. Takes back RUNNING jobs of a crash first on its own store; on a shared one, when their leases
  // expire. FAILED_PRECONDITION without the device.
  absl::Status Start();
  // A job was queued or its cancel requested; any job when empty.
  void Notify(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops and requeues the running jobs, and joins the threads.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Running {
    std::shared_ptr<Attempt> attempt;
    absl::Time lease_end;  // as far as this server knows, by the steady clock
  };

  void RunJobs();
  int64_t AwaitNotice(int64_t seen) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Attempt>> LeaseNext() ABSL_LOCKS_EXCLUDED(lease_mutex_, mutex_);
  [[nodiscard]] std::string DeviceFor(const StoredJob& job) const;
  std::shared_ptr<Attempt> Admit(const StoredJob& job, std::string schema) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunJob(Attempt& attempt);
  // Stores the job's end; true when its output was released.
  absl::StatusOr<bool> EndJob(const Attempt& attempt, const absl::StatusOr<JobOutput>& output);
  void RemoveFiles(const StoredJob& stored) const;
  void CountEnd(v1::Job::State state) const;
  void MarkSpend(const std::string& job) const;
  void Forget(const Attempt& attempt) ABSL_LOCKS_EXCLUDED(mutex_);

  void KeepLeases();
  void RenewLeases() ABSL_LOCKS_EXCLUDED(mutex_);
  void StopCancelled() ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeBack(bool everyone);
  // Of `running`, jobs whose lease nobody renewed for its length.
  std::vector<StoredJob> NotRenewed(const std::vector<StoredJob>& running);
  void ForgetPauses();
  std::vector<Running> running() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  const DataDirectory& directory_;
  const SigningKeySource key_;
  ProgressBoard& progress_;
  const WorkerOptions options_;
  std::string device_;
  Mutex lease_mutex_
      ABSL_ACQUIRED_BEFORE(mutex_);  // one thread leases at a time, so that no two count on the same memory
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool threads_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool check_cancels_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t notices_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t free_bytes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Running> running_ ABSL_GUARDED_BY(mutex_);  // by job
  std::vector<std::thread> threads_;
  std::thread keeper_;
  std::unique_ptr<Periodic> ticking_;  // wakes the threads, which may have missed a notice
  // What the keeper knows of running jobs, and since when by the steady clock.
  struct Seen {
    int64_t lease = 0;
    absl::Time expire_time;
    absl::Time since;
  };
  std::map<std::string, Seen> seen_;
};

// Removes model files of no stored output and no running attempt.
absl::Status SweepModels(Database& database, const DataDirectory& directory);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_WORKER_H_
