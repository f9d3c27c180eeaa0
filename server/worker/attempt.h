// One run of one job: from the dataset's file to model files that are not visible yet.
#ifndef DPAR_SERVER_WORKER_ATTEMPT_H_
#define DPAR_SERVER_WORKER_ATTEMPT_H_

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/random/random.h"
#include "core/train/train.h"
#include "server/queue/queue.h"
#include "server/store/data_directory.h"
#include "server/worker/progress.h"
#include "server/worker/training_progress.h"

namespace dpar {

enum class StopCause {
  kNone,
  kCancelled,  // its job's cancel was requested
  kLeaseLost,  // another worker may run the job by now
  kShutdown,   // the server stops
  kShortage,   // the machine had no room for it (server/machine.h)
};

// Run is for one thread; Stop and cause are for any, opened for after it.
class Attempt {
 public:
  // `schema` is the dataset's; the model carries it.
  Attempt(const StoredJob& stored, std::string schema, const DataDirectory& directory, ProgressBoard& progress,
          TrainOptions options)
      : stored_(stored),
        schema_(std::move(schema)),
        directory_(directory),
        progress_(progress),
        options_(std::move(options)) {}

  // Trains and saves to this attempt's own directory; nothing is visible yet. CANCELLED after Stop; UNAVAILABLE for a
  // fault of the machine, worth another attempt; any other error is due to the data.
  absl::StatusOr<JobOutput> Run();

  // Ends Run soon. The first cause stands.
  void Stop(StopCause cause);
  [[nodiscard]] StopCause cause() const { return cause_; }
  // Whether the data was read. False for a damaged file: its checks end before anything is computed from it.
  [[nodiscard]] bool opened() const { return opened_; }
  [[nodiscard]] const StoredJob& stored() const { return stored_; }

 private:
  absl::StatusOr<TrainedModel> TrainModel();
  [[nodiscard]] std::unique_ptr<RandomSource> MakeStream() const;
  absl::StatusOr<JobOutput> Save(const TrainedModel& trained);
  absl::Status WriteFiles(const Model& model, JobOutput& output);

  const StoredJob stored_;
  const std::string schema_;
  const DataDirectory& directory_;
  ProgressBoard& progress_;
  const TrainOptions options_;
  std::atomic<StopCause> cause_ = StopCause::kNone;
  bool opened_ = false;
  // Its destructor waits, which the job's end must not.
  std::future<TrainingProgress::Epsilon> unfinished_epsilon_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_ATTEMPT_H_
