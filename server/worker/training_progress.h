// What a running job shows of its training, bounded in how often it changes and in the time that it takes from
// training.
#ifndef DPAR_SERVER_WORKER_TRAINING_PROGRESS_H_
#define DPAR_SERVER_WORKER_TRAINING_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/train/train.h"
#include "server/worker/progress.h"

namespace dpar {

// What steps cost. `of_steps` may take seconds, runs on a thread of its own, and must not refer to anything that a
// job's end destroys.
struct EpsilonSource {
  std::function<double(int64_t steps)> of_steps;
  std::optional<double> of_all;  // of every step, when it is known
};

// Turns the trainer's reports into progress on the board: the first and the last of a stage at once, others at most 20
// times a second. For one thread, which never waits here.
//
// Epsilon so far is computed beside training, at least 0.2 seconds apart, for at most a tenth of the time, and not when
// the stage will be over within a second. Meanwhile the last value stands, which is smaller.
class TrainingProgress {
 public:
  using Clock = std::function<absl::Time()>;
  struct Epsilon {
    double value = 0;
    absl::Duration took;
  };

  TrainingProgress(ProgressBoard& board, std::string job, EpsilonSource epsilon, Clock clock = absl::Now,
                   std::launch launch = std::launch::async);

  // As TrainingCallbacks::on_progress.
  void Report(TrainingStage stage, int64_t completed, int64_t total);

  // The computation that is under way, if any. Destroying it waits for its end, which a cancelled job must not.
  [[nodiscard]] std::future<Epsilon> TakeUnfinished() { return std::move(unfinished_); }

 private:
  void Begin(TrainingStage stage, int64_t total, absl::Time now);
  // Asks for epsilon when it is time to.
  void AskForEpsilon(absl::Time now);
  // Takes the value that was asked for, once it is there.
  void CollectEpsilon();
  void Show(absl::Time now);

  ProgressBoard& board_;
  const std::string job_;
  const EpsilonSource epsilon_;
  const Clock clock_;
  const std::launch launch_;
  Progress progress_;
  absl::Time next_update_;
  absl::Time next_epsilon_;
  std::future<Epsilon> unfinished_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_TRAINING_PROGRESS_H_
