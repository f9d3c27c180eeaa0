// Runs jobs, one at a time: the only room that joins core/ to the ledger and the queue.
#ifndef DPAR_SERVER_WORKER_WORKER_H_
#define DPAR_SERVER_WORKER_WORKER_H_

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/certificate/signing_key.h"
#include "core/train/train.h"
#include "server/queue/queue.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/worker/progress.h"
#include "server/worker/training_progress.h"

namespace dpar {

struct WorkerOptions {
  int max_attempts = 3;
  std::string device = "auto";  // "auto", "cpu", "cuda", "cuda:i"
};

// One worker thread. Everything passed in outlives it.
class Worker {
 public:
  Worker(Database& database, const DataDirectory& directory, const SigningKey& key, ProgressBoard& progress,
         WorkerOptions options);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Checks the device and starts the thread. What a crash left RUNNING is put back first (or ended, when its attempts
  // are used up). FAILED_PRECONDITION when the device is not there.
  absl::Status Start();
  // Wakes the worker: a job was queued, or a cancel requested.
  void Notify();
  // Stops the running job, puts it back into the queue, and joins the thread.
  void Stop();

 private:
  void Loop();
  // Resolves jobs that are RUNNING though nobody runs them.
  absl::Status Recover();
  void RunJob(const StoredJob& stored);
  // Trains and saves. Nothing of it is visible yet.
  absl::StatusOr<JobOutput> RunAttempt(const StoredJob& stored);
  absl::StatusOr<TrainedModel> TrainModel(const StoredJob& stored);
  absl::StatusOr<JobOutput> Save(const StoredJob& stored, const TrainedModel& trained);
  absl::Status WriteFiles(const std::string& job, const Model& model, JobOutput& output);
  // False once the worker stops or the job's cancel was requested. From any thread, as often as one likes: the store is
  // asked only after Notify.
  bool KeepGoing(const std::string& job);
  // The one way out for a model. CANCELLED, and nothing done, when a cancel came first.
  absl::Status Finish(const StoredJob& stored, JobOutput output);
  absl::Status GiveUp(const StoredJob& stored, const absl::Status& cause);
  // Removes files that no posted entry made visible.
  absl::Status RemoveFiles(const std::string& job) const;

  Database& database_;
  const DataDirectory& directory_;
  const SigningKey& key_;
  ProgressBoard& progress_;
  const WorkerOptions options_;
  std::string device_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> check_cancel_ = false;  // the store may hold a cancel that was not seen yet
  std::atomic<bool> cancelled_ = false;     // the running job's cancel was seen
  // A number for a job that has ended; waited for when the next one has, or the worker is destroyed.
  std::future<TrainingProgress::Epsilon> unfinished_epsilon_;
  absl::Mutex mutex_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_WORKER_H_
