#include "server/worker/training_progress.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dpar {
namespace {

constexpr absl::Duration kUpdatePeriod = absl::Milliseconds(50);
constexpr absl::Duration kEpsilonPeriod = absl::Milliseconds(200);
// Rest between computations of epsilon, in multiples of the last one's time.
constexpr int64_t kRestForOne = 9;
// Not computed when the stage ends sooner than this.
constexpr absl::Duration kAlmostOver = absl::Seconds(1);

std::string NameOf(TrainingStage stage) {
  switch (stage) {
    case TrainingStage::kStructure:
      return "structure";
    case TrainingStage::kTraining:
      return "training";
    case TrainingStage::kEvaluating:
      return "evaluating";
  }
  return "";
}

}  // namespace

TrainingProgress::TrainingProgress(ProgressBoard& board, std::string job, EpsilonSource epsilon, Clock clock,
                                   std::launch launch)
    : board_(board), job_(std::move(job)), epsilon_(std::move(epsilon)), clock_(std::move(clock)), launch_(launch) {}

void TrainingProgress::Report(TrainingStage stage, int64_t completed, int64_t total) {
  const absl::Time now = clock_();
  if (completed == 0) {
    Begin(stage, total, now);
    return;
  }
  const bool last = completed == total;
  if (!last && now < next_update_) {
    return;
  }
  progress_.completed = completed;
  CollectEpsilon();
  if (last && epsilon_.of_all.has_value()) {
    progress_.epsilon_so_far = *epsilon_.of_all;
  } else {
    AskForEpsilon(now);
  }
  Show(now);
}

void TrainingProgress::Begin(TrainingStage stage, int64_t total, absl::Time now) {
  CollectEpsilon();
  progress_ = {NameOf(stage), 0, total, now, progress_.epsilon_so_far};
  next_epsilon_ = now + kEpsilonPeriod;
  Show(now);
}

void TrainingProgress::AskForEpsilon(absl::Time now) {
  const double units_left = static_cast<double>(progress_.total - progress_.completed);
  const absl::Duration time_left =
      (now - progress_.stage_start) * (units_left / static_cast<double>(progress_.completed));
  const bool due = now >= next_epsilon_ && time_left >= kAlmostOver;
  if (unfinished_.valid() || !(due || units_left == 0)) {
    return;
  }
  unfinished_ =
      std::async(launch_, [of_steps = epsilon_.of_steps, clock = clock_, steps = progress_.completed]() -> Epsilon {
        const absl::Time start = clock();
        const double value = of_steps(steps);
        return {value, clock() - start};
      });
  CollectEpsilon();
}

void TrainingProgress::CollectEpsilon() {
  if (!unfinished_.valid() || unfinished_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout) {
    return;
  }
  const Epsilon epsilon = unfinished_.get();
  progress_.epsilon_so_far = std::max(progress_.epsilon_so_far, epsilon.value);
  next_epsilon_ = clock_() + std::max(kEpsilonPeriod, kRestForOne * epsilon.took);
}

void TrainingProgress::Show(absl::Time now) {
  board_.Update(job_, progress_);
  next_update_ = now + kUpdatePeriod;
}

}  // namespace dpar
