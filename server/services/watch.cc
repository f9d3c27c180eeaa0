#include "server/services/watch.h"

#include "absl/strings/ascii.h"

namespace dpar {
namespace {

void AddRate(const Progress& progress, absl::Time now, v1::WatchJobResponse& message) {
  const double elapsed = absl::ToDoubleSeconds(now - progress.stage_start);
  if (progress.total <= 0 || progress.completed <= 0 || elapsed <= 0) {
    return;
  }
  const double rate = static_cast<double>(progress.completed) / elapsed;
  const int64_t left_microseconds =
      absl::ToInt64Microseconds(absl::Seconds(static_cast<double>(progress.total - progress.completed) / rate));
  message.set_rate(rate);
  message.mutable_eta()->set_seconds(left_microseconds / 1'000'000);
  message.mutable_eta()->set_nanos(static_cast<int32_t>(left_microseconds % 1'000'000 * 1'000));
}

}  // namespace

bool IsTerminal(v1::Job::State state) {
  return state == v1::Job::SUCCEEDED || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

v1::WatchJobResponse DescribeProgress(const v1::Job& job, const std::optional<Progress>& progress, absl::Time now) {
  v1::WatchJobResponse message;
  message.set_state(job.state());
  message.set_terminal(IsTerminal(job.state()));
  if (job.state() == v1::Job::RUNNING && progress.has_value()) {
    message.set_stage(progress->stage);
    message.set_completed(progress->completed);
    message.set_total(progress->total);
    message.set_epsilon_so_far(progress->epsilon_so_far);
    AddRate(*progress, now, message);
    return message;
  }
  message.set_stage(job.state() == v1::Job::RUNNING ? "loading"
                                                    : absl::AsciiStrToLower(v1::Job::State_Name(job.state())));
  if (job.state() == v1::Job::SUCCEEDED) {
    message.set_completed(job.plan().steps());
    message.set_total(job.plan().steps());
    message.set_epsilon_so_far(job.plan().epsilon());
  }
  return message;
}

bool SaysTheSame(const v1::WatchJobResponse& a, const v1::WatchJobResponse& b) {
  return a.state() == b.state() && a.stage() == b.stage() && a.completed() == b.completed() && a.total() == b.total() &&
         a.epsilon_so_far() == b.epsilon_so_far() && a.terminal() == b.terminal();
}

}  // namespace dpar
