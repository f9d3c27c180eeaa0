#include "server/services/watch.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/queue/queue.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(9);
constexpr absl::Duration kSpacing = absl::Milliseconds(100);
// Bounds how late a caller that went away, or the server's end, is noticed.
constexpr absl::Duration kPatience = absl::Seconds(1);

bool IsTerminal(v1::Job::State state) {
  return state == v1::Job::SUCCEEDED || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

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

// Whether two messages say the same, but for rates and times.
bool SaysTheSame(v1::WatchJobResponse a, v1::WatchJobResponse b) {
  for (v1::WatchJobResponse* message : {&a, &b}) {
    message->clear_sequence();
    message->clear_time();
    message->clear_rate();
    message->clear_eta();
  }
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

}  // namespace

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

absl::Status Watch(const Rooms& rooms, const std::string& job, int64_t after_sequence,
                   const std::function<bool(const v1::WatchJobResponse&)>& send, const std::function<bool()>& gone) {
  int64_t sequence = after_sequence;
  int64_t seen_change = 0;
  absl::Time last_sent = absl::InfinitePast();
  v1::WatchJobResponse last;
  while (!gone()) {
    if (rooms.stopping.load()) {
      return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                       "the server is stopping; the job goes on when it is back. Watch again");
    }
    // The board is read before the store: a change that comes between the two wakes the next wait.
    const ProgressBoard::Snapshot snapshot = rooms.progress.Wait(job, seen_change, absl::Now());
    DPAR_ASSIGN_OR_RETURN(const StoredJob stored,
                          ReadFrom(rooms.database, [&](Transaction& transaction) { return GetJob(transaction, job); }));
    const absl::Time now = absl::Now();
    // A job that runs on another server is known by what that one stored.
    std::optional<Progress> progress = snapshot.progress;
    if (!progress.has_value() && stored.job.has_progress()) {
      progress = FromProto(stored.job.progress());
    }
    v1::WatchJobResponse message = DescribeProgress(stored.job, progress, now);
    if (message.terminal() || now - last_sent >= kHeartbeat || !SaysTheSame(message, last)) {
      sequence = std::max(sequence + 1, absl::ToUnixMicros(now));
      message.set_sequence(sequence);
      *message.mutable_time() = ToTimestamp(absl::ToUnixMicros(now));
      if (!send(message) || message.terminal()) {
        return absl::OkStatus();
      }
      last = message;
      last_sent = now;
    }
    seen_change = snapshot.sequence;
    absl::SleepFor(kSpacing);
    rooms.progress.Wait(job, seen_change, absl::Now() + kPatience);
  }
  return absl::CancelledError("the caller went away");
}

}  // namespace dpar
