#include "server/worker/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/train/device.h"
#include "core/train/train.h"
#include "server/files.h"
#include "server/machine.h"
#include "server/seam.h"
#include "server/steady_time.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"
#include "server/worker/outcome.h"

namespace dpar {
namespace {

// Idle threads look this often: notices can be lost, and jobs wait for their next attempt.
constexpr absl::Duration kIdleWait = absl::Seconds(1);
// Period of lease renewal and progress storage; shorter for short leases.
constexpr absl::Duration kRenewPeriod = absl::Seconds(1);
constexpr int kRenewalsInLease = 4;
constexpr absl::Duration kStoreWait = absl::Milliseconds(500);

}  // namespace

Worker::Worker(Database& database, const DataDirectory& directory, SigningKeySource key, ProgressBoard& progress,
               WorkerOptions options)
    : database_(database),
      directory_(directory),
      key_(std::move(key)),
      progress_(progress),
      options_(std::move(options)),
      free_bytes_(options_.total_bytes) {}

Worker::~Worker() { Stop(); }

absl::Status Worker::Start() {
  DPAR_ASSIGN_OR_RETURN(device_, ChooseDevice(options_.device));
  TakeBack(/*everyone=*/!database_.shared());
  DPAR_RETURN_IF_ERROR(SweepModels(database_, directory_));
  ticking_ = std::make_unique<Periodic>([this] {
    const MutexLock lock(&mutex_);
    ++notices_;
    return std::min(kIdleWait, options_.lease / kRenewalsInLease);
  });
  keeper_ = std::thread([this] { KeepLeases(); });
  for (int i = 0; i < options_.concurrent_jobs; ++i) {
    threads_.emplace_back([this] { RunJobs(); });
  }
  return absl::OkStatus();
}

void Worker::Notify(const std::string& job) {
  const MutexLock lock(&mutex_);
  ++notices_;
  check_cancels_ = check_cancels_ || job.empty() || running_.count(job) != 0;
}

void Worker::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    ++notices_;
    for (const auto& [job, running] : running_) {
      running.attempt->Stop(StopCause::kShutdown);
    }
  }
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
  {
    const MutexLock lock(&mutex_);
    threads_ended_ = true;
    ++notices_;
  }
  if (keeper_.joinable()) {
    keeper_.join();
  }
  ticking_.reset();
}

bool Worker::stopping() const {
  const MutexLock lock(&mutex_);
  return stopping_;
}

std::vector<Worker::Running> Worker::running() const {
  const MutexLock lock(&mutex_);
  std::vector<Running> running;
  for (const auto& [job, one] : running_) {
    running.push_back(one);
  }
  return running;
}

int64_t Worker::AwaitNotice(int64_t seen) {
  const MutexLock lock(&mutex_);
  const auto noticed = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return notices_ != seen; };
  mutex_.Await(Condition(&noticed));
  return notices_;
}

void Worker::RunJobs() {
  int64_t seen = 0;
  while (!stopping()) {
    const absl::StatusOr<std::shared_ptr<Attempt>> attempt = LeaseNext();
    if (!attempt.ok()) {
      spdlog::error("worker: no job can be leased: {}", std::string(attempt.status().message()));
    }
    if (!attempt.ok() || *attempt == nullptr) {
      seen = AwaitNotice(seen);
      continue;
    }
    RunJob(**attempt);
    Forget(**attempt);
  }
}

absl::StatusOr<std::shared_ptr<Attempt>> Worker::LeaseNext() {
  const MutexLock leasing(&lease_mutex_);
  if (stopping()) {
    return nullptr;
  }
  DPAR_RETURN_IF_ERROR(CheckMachine(directory_.root()));
  LeaseRequest request{options_.owner, absl::Now(), options_.lease, options_.max_running_jobs, 0, options_.total_bytes};
  {
    const MutexLock lock(&mutex_);
    request.free_bytes = free_bytes_;
  }
  std::optional<StoredJob> job;
  std::string schema;
  DPAR_RETURN_IF_ERROR(database_.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(job, Lease(transaction, request));
    if (job.has_value()) {
      DPAR_ASSIGN_OR_RETURN(schema, GetTableSchema(transaction, job->job.spec().dataset()));
    }
    return absl::OkStatus();
  }));
  return job.has_value() ? Admit(*job, std::move(schema)) : nullptr;
}

std::string Worker::DeviceFor(const StoredJob& job) const {
  // With a seed, the same job gives the same model, which no other device promises either.
  return job.job.plan().non_private() && !job.job.spec().has_seed() ? device_ : kPrivateDevice;
}

std::shared_ptr<Attempt> Worker::Admit(const StoredJob& job, std::string schema) {
  DPAR_SEAM("leased");
  auto attempt = std::make_shared<Attempt>(job, std::move(schema), directory_, progress_,
                                           TrainOptions{DeviceFor(job), options_.threads});
  const MutexLock lock(&mutex_);
  free_bytes_ -= job.job.memory_bytes();
  // A cancel may have come after the lease, before this attempt was registered.
  check_cancels_ = true;
  ++notices_;
  if (stopping_) {
    attempt->Stop(StopCause::kShutdown);
  }
  running_[job.job.name()] = {attempt, SteadyNow() + options_.lease};
  return attempt;
}

void Worker::RunJob(Attempt& attempt) {
  const StoredJob& stored = attempt.stored();
  const std::string& name = stored.job.name();
  spdlog::info("worker: {} starts, attempt {}, on {}", name, stored.job.attempts(), DeviceFor(stored));
  const absl::StatusOr<JobOutput> output = attempt.Run();
  absl::StatusOr<bool> released = EndJob(attempt, output);
  // The outcome waits here for the store; the keeper holds the lease as soon as it can.
  while (absl::IsUnavailable(released.status()) && !stopping()) {
    spdlog::error("worker: the outcome of {} cannot be stored: {}", name, std::string(released.status().message()));
    absl::SleepFor(kStoreWait);
    released = EndJob(attempt, output);
  }
  progress_.Remove(name);
  if (released.ok() && *released) {
    spdlog::info("worker: {} succeeded", name);
    return;
  }
  if (!released.ok() && !absl::IsFailedPrecondition(released.status())) {
    // The outcome is unknown, so the files stay until the lease runs out and a server takes the job back.
    spdlog::error("worker: {} could not be ended: {}", name, std::string(released.status().message()));
    return;
  }
  spdlog::info("worker: {} ended without a model{}", name, released.ok() ? "" : "; its lease was lost");
  RemoveFiles(stored);
}

void Worker::RemoveFiles(const StoredJob& stored) const {
  const absl::Status removed = RemoveTree(directory_.AttemptDirectory(stored.job.name(), stored.lease));
  if (!removed.ok()) {
    spdlog::error("worker: {}", std::string(removed.message()));
  }
}

absl::StatusOr<bool> Worker::EndJob(const Attempt& attempt, const absl::StatusOr<JobOutput>& output) {
  absl::Status cause = output.status();
  if (output.ok()) {
    // Compute the price and read the key before the timed commit.
    DPAR_ASSIGN_OR_RETURN(const double accountant_epsilon, AccountantEpsilon(attempt.stored()));
    DPAR_RETURN_IF_ERROR(key_().status());
    // Also after a lost lease: the lease is lost too once a release was committed.
    cause = TimeLedgerCommit(options_.metrics, LedgerCommit::kRelease, [&]() -> absl::Status {
      return Release(database_, key_, attempt.stored(), *output, accountant_epsilon);
    });
    if (cause.ok()) {
      MarkSpend(attempt.stored().job.name());
      CountEnd(v1::Job::SUCCEEDED);
      return true;
    }
    if (!absl::IsCancelled(cause)) {
      return cause;
    }
  }
  StopCause stopped = attempt.cause();
  if (absl::IsUnavailable(cause) && !CheckMachine(directory_.root()).ok()) {
    // The job is queued again, and leased when the machine has room.
    cause = absl::CancelledError("the machine ran short");
    stopped = StopCause::kShortage;
  }
  // Nothing was released and nothing will be: files go before the job's end is visible.
  RemoveFiles(attempt.stored());
  v1::Job::State state = v1::Job::RUNNING;
  DPAR_RETURN_IF_ERROR(TimeLedgerCommit(options_.metrics, LedgerCommit::kGiveUp, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(
        state, GiveUp(database_, attempt.stored(), {cause, stopped, attempt.opened()}, options_.max_attempts));
    return absl::OkStatus();
  }));
  if (state != v1::Job::QUEUED) {
    MarkSpend(attempt.stored().job.name());
  }
  // After the mark: the count, too, reveals how a job ended.
  CountEnd(state);
  return false;
}

void Worker::CountEnd(v1::Job::State state) const {
  if (options_.metrics != nullptr) {
    options_.metrics->JobEnded(state);
  }
}

// A failure here is harmless: the mark is written before anyone gets the output.
void Worker::MarkSpend(const std::string& job) const {
  if (options_.witness != nullptr) {
    options_.witness->CoverJobs({job}).IgnoreError();
  }
}

void Worker::Forget(const Attempt& attempt) {
  const MutexLock lock(&mutex_);
  free_bytes_ += attempt.stored().job.memory_bytes();
  // Unless the job was leased again here after this attempt lost it.
  const auto found = running_.find(attempt.stored().job.name());
  if (found != running_.end() && found->second.attempt.get() == &attempt) {
    running_.erase(found);
  }
  ++notices_;
}

void Worker::KeepLeases() {
  const absl::Duration period = std::min(kRenewPeriod, options_.lease / kRenewalsInLease);
  absl::Time next_renewal = SteadyNow() + period;
  int64_t seen = 0;
  while (true) {
    seen = AwaitNotice(seen);
    bool check_cancels = false;
    {
      const MutexLock lock(&mutex_);
      if (threads_ended_) {
        return;
      }
      check_cancels = std::exchange(check_cancels_, false);
    }
    if (SteadyNow() >= next_renewal) {
      next_renewal = SteadyNow() + period;
      RenewLeases();
      TakeBack(/*everyone=*/false);
      ForgetPauses();
    } else if (check_cancels) {
      StopCancelled();
    }
  }
}

void Worker::RenewLeases() {
  for (const Running& one : running()) {
    const StoredJob& stored = one.attempt->stored();
    const std::string& name = stored.job.name();
    const absl::Time now = SteadyNow();
    bool cancel_requested = false;
    const absl::Status status = database_.Write([&](Transaction& transaction) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(const StoredJob renewed, Renew(transaction, name, stored.lease, absl::Now(), options_.lease,
                                                           ToProto(progress_.Get(name))));
      cancel_requested = renewed.cancel_requested;
      return absl::OkStatus();
    });
    if (absl::IsFailedPrecondition(status) || (!status.ok() && now >= one.lease_end)) {
      one.attempt->Stop(StopCause::kLeaseLost);
    } else if (cancel_requested) {
      one.attempt->Stop(StopCause::kCancelled);
    }
    const MutexLock lock(&mutex_);
    if (const auto found = running_.find(name); status.ok() && found != running_.end()) {
      found->second.lease_end = now + options_.lease;
    }
  }
}

void Worker::StopCancelled() {
  for (const Running& one : running()) {
    const absl::Status status = database_.Read([&](Transaction& transaction) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(transaction, one.attempt->stored().job.name()));
      if (stored.cancel_requested) {
        one.attempt->Stop(StopCause::kCancelled);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) {
      spdlog::error("worker: cancels cannot be seen: {}", std::string(status.message()));
    }
  }
}

// By this server's steady clock and not by the stored time, which another member's clock wrote.
std::vector<StoredJob> Worker::NotRenewed(const std::vector<StoredJob>& running) {
  std::vector<StoredJob> orphans;
  std::map<std::string, Seen> seen;
  const absl::Time now = SteadyNow();
  for (const StoredJob& stored : running) {
    const auto before = seen_.find(stored.job.name());
    const bool same = before != seen_.end() && before->second.lease == stored.lease &&
                      before->second.expire_time == stored.lease_expire_time;
    const absl::Time since = same ? before->second.since : now;
    seen[stored.job.name()] = {stored.lease, stored.lease_expire_time, since};
    if (now - since >= options_.lease) {
      orphans.push_back(stored);
    }
  }
  seen_ = std::move(seen);
  return orphans;
}

void Worker::ForgetPauses() {
  std::vector<std::string> forgotten;
  const absl::Status status = database_.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(forgotten, ForgetFarPauses(transaction, absl::Now()));
    return absl::OkStatus();
  });
  if (!status.ok()) {
    spdlog::error("worker: pauses cannot be seen: {}", std::string(status.message()));
    return;
  }
  for (const std::string& job : forgotten) {
    spdlog::warn("worker: {} waited for a time that no rule sets; a clock was wrong. It may run now", job);
  }
}

void Worker::TakeBack(bool everyone) {
  const absl::StatusOr<std::vector<StoredJob>> running = ReadFrom(database_, RunningJobs);
  if (!running.ok()) {
    spdlog::error("worker: abandoned jobs cannot be seen: {}", std::string(running.status().message()));
    return;
  }
  for (const StoredJob& stored : everyone ? *running : NotRenewed(*running)) {
    const std::string& name = stored.job.name();
    std::optional<v1::Job::State> taken;
    const absl::Status status = TimeLedgerCommit(options_.metrics, LedgerCommit::kTakeBack, [&]() -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(taken, TakeBackOrphan(database_, stored, options_.max_attempts));
      return absl::OkStatus();
    });
    if (!status.ok()) {
      spdlog::error("worker: {} cannot be taken back: {}", name, std::string(status.message()));
    } else if (taken.has_value()) {
      DPAR_SEAM("taken-back");
      if (*taken != v1::Job::QUEUED) {
        MarkSpend(name);
      }
      CountEnd(*taken);
      spdlog::warn("worker: {} was interrupted in attempt {}", name, stored.job.attempts());
      // It was RUNNING until now, so none of its files is an output.
      RemoveFiles(stored);
    }
  }
}

}  // namespace dpar
