#include "server/services/watch_hub.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/queue/queue.h"
#include "server/services/stream_watchdog.h"
#include "server/services/watch.h"
#include "server/steady_time.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

// How often a job is read without a notice: notices can be lost, and other servers store progress.
constexpr absl::Duration kPeriod = absl::Seconds(1);
constexpr absl::Duration kWakePeriod = absl::Seconds(1);
// Least time between two messages to a watcher; more, up to kPeriod, when many watch a job: 5,000 messages a second.
constexpr absl::Duration kSpacing = absl::Milliseconds(100);
constexpr absl::Duration kSpacingForOne = absl::Microseconds(200);
// Ten seconds are guaranteed; a look may be late.
constexpr absl::Duration kHeartbeat = absl::Seconds(8);

struct Sight {
  JobStandings standings;
  std::vector<Spend> spends;  // of those that ended
};

absl::StatusOr<Sight> LookAt(Transaction& transaction, const std::vector<std::string>& names) {
  Sight look;
  DPAR_ASSIGN_OR_RETURN(look.standings, GetStandings(transaction, names));
  std::vector<std::string> ended;
  for (const auto& [name, job] : look.standings) {
    if (job.ok() && IsTerminal(job->state())) {
      ended.push_back(name);
    }
  }
  DPAR_ASSIGN_OR_RETURN(look.spends, SpendsOf(transaction, ended));
  return look;
}

absl::Status Stopping() {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "the server is stopping; the job goes on when it is back. Watch again");
}

}  // namespace

WatchHub::WatchHub(Database& database, ProgressBoard& board, Witness& witness, absl::Duration patience)
    : database_(database), board_(board), witness_(witness), patience_(patience) {
  board_.Listen([this](const std::string& job) { Changed(job); });
}

WatchHub::~WatchHub() {
  board_.Listen(nullptr);
  Stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void WatchHub::Start() {
  thread_ = std::thread([this] { Loop(); });
  // A wait of Mutex that is under way lasts longer when the wall clock is set back.
  waking_ = std::make_unique<Periodic>([this] {
    const MutexLock lock(&mutex_);
    wake_ = true;
    return kWakePeriod;
  });
}

void WatchHub::Stop() {
  Effects effects;
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    const std::map<std::string, JobPointer> jobs = jobs_;
    for (const auto& [name, job] : jobs) {
      const std::set<std::shared_ptr<Watch>> watches = job->watches;
      for (const std::shared_ptr<Watch>& watch : watches) {
        EndWith(watch, Stopping(), effects);
      }
    }
  }
  Perform(std::move(effects));
}

void WatchHub::Join(const std::shared_ptr<Watch>& watch, const std::string& job, int64_t after_sequence) {
  Effects effects;
  {
    const MutexLock lock(&mutex_);
    if (stopping_) {
      EndWith(watch, Stopping(), effects);
    } else if (!StateOf(*watch).end.has_value()) {
      StateOf(*watch).job = job;
      StateOf(*watch).sequence = after_sequence;
      JobPointer& watched = jobs_[job];
      if (watched == nullptr) {
        watched = std::make_shared<Job>();
      }
      watched->watches.insert(watch);
      Hasten(job, *watched);
    }
    Release(watch, effects);
  }
  Perform(std::move(effects));
}

void WatchHub::Refuse(const std::shared_ptr<Watch>& watch, const absl::Status& status) {
  Effects effects;
  {
    const MutexLock lock(&mutex_);
    EndWith(watch, status, effects);
    Release(watch, effects);
  }
  Perform(std::move(effects));
}

void WatchHub::Leave(const std::shared_ptr<Watch>& watch) {
  Effects effects;
  {
    const MutexLock lock(&mutex_);
    EndWith(watch, absl::CancelledError("the caller went away"), effects);
  }
  Perform(std::move(effects));
}

void WatchHub::Sent(const std::shared_ptr<Watch>& watch, bool taken) {
  Effects effects;
  {
    const MutexLock lock(&mutex_);
    StateOf(*watch).sending = false;
    if (!taken) {
      EndWith(watch, absl::CancelledError("the caller went away"), effects);
    } else if (StateOf(*watch).terminal) {
      EndWith(watch, absl::OkStatus(), effects);
    } else if (std::exchange(StateOf(*watch).behind, false) && !StateOf(*watch).end.has_value()) {
      Hasten(StateOf(*watch).job, *jobs_.at(StateOf(*watch).job));
    }
    Release(watch, effects);
  }
  Perform(std::move(effects));
}

void WatchHub::Changed(const std::string& job) {
  const MutexLock lock(&mutex_);
  if (job.empty()) {
    for (const auto& [name, watched] : jobs_) {
      Hasten(name, *watched);
    }
  } else if (const auto watched = jobs_.find(job); watched != jobs_.end()) {
    Hasten(job, *watched->second);
  }
}

void WatchHub::Loop() {
  while (true) {
    const absl::Time next = Look(SteadyNow(), absl::Now());
    const MutexLock lock(&mutex_);
    const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return wake_ || stopping_; };
    mutex_.AwaitWithTimeout(Condition(&wanted), next - SteadyNow());
    if (stopping_) {
      return;
    }
  }
}

absl::Time WatchHub::Look(absl::Time now, absl::Time time) {
  const std::map<std::string, JobPointer> due = TakeDue(now);
  const States states = Read(due, time);
  Effects effects;
  absl::Time next;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [name, job] : due) {
      Tell(*job, states.at(name), now, time, effects);
    }
    next = agenda_.empty() ? absl::InfiniteFuture() : agenda_.begin()->first;
  }
  Perform(std::move(effects));
  return next;
}

// A change from here on makes the job due again, though the next read may include it.
std::map<std::string, WatchHub::JobPointer> WatchHub::TakeDue(absl::Time now) {
  const MutexLock lock(&mutex_);
  std::map<std::string, JobPointer> due;
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    const std::string name = agenda_.begin()->second;
    const JobPointer& job = jobs_.at(name);
    job->last_look = now;
    Schedule(name, *job, now + kPeriod);
    due.emplace(name, job);
  }
  wake_ = false;
  return due;
}

WatchHub::States WatchHub::Read(const std::map<std::string, JobPointer>& jobs, absl::Time time) {
  States states;
  if (jobs.empty()) {
    return states;
  }
  std::vector<std::string> names;
  std::map<std::string, std::optional<Progress>> progress;
  // Board before store: then progress is never older than the state sent after it.
  for (const auto& [name, job] : jobs) {
    names.push_back(name);
    progress[name] = board_.Get(name);
  }
  const absl::StatusOr<Sight> look =
      ReadFrom(database_, [&](Transaction& transaction) { return LookAt(transaction, names); });
  if (look.ok()) {
    for (const Spend& spend : look->spends) {
      if (absl::Status covered = witness_.Cover(spend); !covered.ok()) {
        states.emplace(spend.job, std::move(covered));
      }
    }
  }
  for (const std::string& name : names) {
    if (!look.ok()) {
      states.emplace(name, look.status());
      continue;
    }
    // Does not replace an existing answer.
    const auto standing = look->standings.find(name);
    if (standing == look->standings.end()) {
      states.emplace(name, ResourceNotFound(name));
    } else if (!standing->second.ok()) {
      states.emplace(name, standing->second.status());
    } else {
      // A job on another server shows the progress that it stored.
      const v1::Job& job = *standing->second;
      if (!progress[name].has_value() && job.has_progress()) {
        progress[name] = FromProto(job.progress());
      }
      states.emplace(name, DescribeProgress(job, progress[name], time));
    }
  }
  return states;
}

void WatchHub::Tell(Job& job, const absl::StatusOr<v1::WatchJobResponse>& state, absl::Time now, absl::Time time,
                    Effects& effects) {
  if (state.ok() && (job.version == 0 || !SaysTheSame(*state, job.state))) {
    job.state = *state;
    ++job.version;
  }
  std::shared_ptr<v1::WatchJobResponse> shared;
  if (state.ok()) {
    shared = std::make_shared<v1::WatchJobResponse>(*state);
    shared->set_sequence(absl::ToUnixMicros(time));
    *shared->mutable_time() = ToTimestamp(absl::ToUnixMicros(time));
  }
  const std::set<std::shared_ptr<Watch>> watches = job.watches;
  for (const std::shared_ptr<Watch>& watch : watches) {
    if (StateOf(*watch).sending) {
      TellBusy(watch, job.version, now, effects);
      continue;
    }
    const bool owed = StateOf(*watch).version == 0 || now - StateOf(*watch).last_sent >= kHeartbeat;
    if (!state.ok()) {
      // A short outage of the store ends only watches that are owed a message.
      if (owed || !absl::IsUnavailable(state.status())) {
        EndWith(watch, state.status(), effects);
      }
      continue;
    }
    if (!owed && StateOf(*watch).version == job.version) {
      continue;
    }
    std::shared_ptr<v1::WatchJobResponse> message = shared;
    if (StateOf(*watch).sequence >= shared->sequence()) {
      message = std::make_shared<v1::WatchJobResponse>(*shared);
      message->set_sequence(StateOf(*watch).sequence + 1);
    }
    StateOf(*watch).sequence = message->sequence();
    StateOf(*watch).version = job.version;
    StateOf(*watch).last_sent = now;
    StateOf(*watch).sending = true;
    StateOf(*watch).terminal = message->terminal();
    ++StateOf(*watch).holds;
    effects.sends.emplace_back(watch, std::move(message));
  }
}

void WatchHub::TellBusy(const std::shared_ptr<Watch>& watch, int64_t version, absl::Time now, Effects& effects) {
  if (now - StateOf(*watch).last_sent < patience_) {
    StateOf(*watch).behind = StateOf(*watch).version != version;
    return;
  }
  spdlog::info("a watch is ended: its caller took nothing for {} s (limit max_idle_seconds)",
               absl::ToInt64Seconds(patience_));
  ++StateOf(*watch).holds;
  effects.cancels.push_back(watch);
  EndWith(watch, IdleTooLong(patience_), effects);
}

void WatchHub::Schedule(const std::string& name, Job& job, absl::Time when) {
  agenda_.erase({job.due, name});
  job.due = when;
  wake_ = wake_ || agenda_.empty() || when < agenda_.begin()->first;
  agenda_.emplace(when, name);
}

void WatchHub::Hasten(const std::string& name, Job& job) {
  const absl::Duration spacing =
      std::clamp(kSpacingForOne * static_cast<int64_t>(job.watches.size()), kSpacing, kPeriod);
  if (job.last_look + spacing < job.due) {
    Schedule(name, job, job.last_look + spacing);
  }
}

// Stops sending and forgets the job with its last watcher. The sink is told once no lock is held.
void WatchHub::EndWith(const std::shared_ptr<Watch>& watch, const absl::Status& status, Effects& effects) {
  if (StateOf(*watch).end.has_value()) {
    return;
  }
  StateOf(*watch).end = status;
  if (const auto watched = jobs_.find(StateOf(*watch).job); watched != jobs_.end()) {
    Job& job = *watched->second;
    job.watches.erase(watch);
    if (job.watches.empty()) {
      agenda_.erase({job.due, StateOf(*watch).job});
      jobs_.erase(watched);
    }
  }
  if (StateOf(*watch).holds == 0) {
    effects.ends.emplace_back(watch, status);
  }
}

void WatchHub::Release(const std::shared_ptr<Watch>& watch, Effects& effects) {
  if (--StateOf(*watch).holds == 0 && StateOf(*watch).end.has_value()) {
    effects.ends.emplace_back(watch, *StateOf(*watch).end);
  }
}

void WatchHub::Perform(Effects effects) {
  for (const auto& [watch, message] : effects.sends) {
    watch->sink_.Send(message);
  }
  if (!effects.cancels.empty()) {
    for (const std::shared_ptr<Watch>& watch : effects.cancels) {
      watch->sink_.Cancel();
    }
    const MutexLock lock(&mutex_);
    for (const std::shared_ptr<Watch>& watch : effects.cancels) {
      Release(watch, effects);
    }
  }
  for (const auto& [watch, status] : effects.ends) {
    watch->sink_.End(status);
  }
}

}  // namespace dpar
