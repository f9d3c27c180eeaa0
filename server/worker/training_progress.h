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

// The price of steps. `of_steps` may take seconds on its own thread, and must not refer to what the job's end destroys.
struct EpsilonSource {
  std::function<double(int64_t steps)> of_steps;
  std::optional<double> of_all;  // of every step, when it is known
};

// Puts the trainer's reports on the board: a stage's first and last at once, others at most 20 times a second. For one
// thread, which never waits here.
// Epsilon is computed beside training, at least 0.2 seconds apart, for at most a tenth of the time, and not in a
// stage's last second. Until then the last, smaller value stands.
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

  // The unfinished computation, if any. Its destructor waits, which a cancelled job must not.
  [[nodiscard]] std::future<Epsilon> TakeUnfinished() { return std::move(unfinished_); }

 private:
  void Begin(TrainingStage stage, int64_t total, absl::Time now);
  void AskForEpsilon(absl::Time now);
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
