#include "server/worker/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/graph/sealed_graph.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/plan.h"
#include "core/train/train.h"
#include "server/ledger/ledger.h"
#include "server/store/datasets.h"

namespace dpar {
namespace {

// How long an idle worker sleeps before it looks again, and how long it waits after the store failed.
constexpr absl::Duration kIdleWait = absl::Seconds(1);

// The only sentences a failed job ever shows. None depends on the data.
constexpr absl::string_view kFailedAfterOpening =
    "the job failed after its data was opened; its price was posted in full";
constexpr absl::string_view kAttemptsUsedUp =
    "the server failed while running this job as often as it may try; nothing was released, and its price was given "
    "back";

EntryContext Now(absl::string_view actor) { return {std::string(actor), absl::Now()}; }

absl::StatusOr<std::string> ChooseDevice(const std::string& wanted) {
  const std::vector<std::string> devices = AvailableDevices();
  if (wanted == "auto") {
    return devices.front();
  }
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const std::string& device) {
    return device == wanted || absl::StartsWith(device, wanted + ":");
  });
  if (found == devices.end()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
                     absl::StrCat("device ", wanted, " is not on this machine; use auto or ", devices.front()),
                     {{"field", "device"}});
  }
  return *found;
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     absl::StrCat("cannot size ", path, ": ", error.message()));
  }
  return static_cast<int64_t>(size);
}

// Gives the reservation back and ends the job. Only for causes that PRIVACY allows: a cancel, or an infrastructure
// failure with its attempts used up; in both no output left the trainer.
absl::Status VoidAndEnd(Transaction& transaction, const StoredJob& stored, v1::Job::State state,
                        absl::string_view failure, const std::string& reason) {
  const EntryContext context = Now("worker");
  if (!stored.budget_id.empty()) {
    DPAR_RETURN_IF_ERROR(
        Void(transaction, stored.budget_id, stored.job.name(), stored.job.attempts(), reason, context));
  }
  return End(transaction, stored.job.name(), state, std::string(failure), context.time);
}

}  // namespace

Worker::Worker(Database& database, const DataDirectory& directory, const SigningKey& key, ProgressBoard& progress,
               WorkerOptions options)
    : database_(database), directory_(directory), key_(key), progress_(progress), options_(std::move(options)) {}

Worker::~Worker() { Stop(); }

absl::Status Worker::Start() {
  DPAR_ASSIGN_OR_RETURN(device_, ChooseDevice(options_.device));
  DPAR_RETURN_IF_ERROR(Recover());
  thread_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

void Worker::Notify() {
  check_cancel_ = true;
  const absl::MutexLock lock(&mutex_);
  woken_ = true;
}

void Worker::Stop() {
  stopping_ = true;
  Notify();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Worker::Loop() {
  while (!stopping_) {
    std::optional<StoredJob> job;
    const absl::Status status = database_.Write([&](Transaction& transaction) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(job, Lease(transaction, absl::Now()));
      return absl::OkStatus();
    });
    if (!status.ok()) {
      spdlog::error("worker: the store cannot be reached: {}", std::string(status.message()));
      job.reset();
    }
    if (job.has_value()) {
      RunJob(*job);
      continue;
    }
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&woken_), kIdleWait);
    woken_ = false;
  }
}

absl::Status Worker::Recover() {
  std::vector<StoredJob> orphans;
  DPAR_RETURN_IF_ERROR(database_.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(orphans, RunningJobs(transaction));
    for (const StoredJob& stored : orphans) {
      if (stored.cancel_requested) {
        DPAR_RETURN_IF_ERROR(VoidAndEnd(transaction, stored, v1::Job::CANCELLED, "", "cancelled while it ran"));
      } else if (stored.job.attempts() >= options_.max_attempts) {
        DPAR_RETURN_IF_ERROR(VoidAndEnd(transaction, stored, v1::Job::FAILED, kAttemptsUsedUp,
                                        "infrastructure failure, attempts used up"));
      } else {
        DPAR_RETURN_IF_ERROR(Requeue(transaction, stored.job.name(), /*count_attempt=*/true));
      }
    }
    return absl::OkStatus();
  }));
  for (const StoredJob& stored : orphans) {
    spdlog::warn("worker: {} was interrupted in attempt {}", stored.job.name(), stored.job.attempts());
    progress_.Remove(stored.job.name());
    // Files of an attempt that no posted entry made visible.
    DPAR_RETURN_IF_ERROR(
        RemoveTree(std::filesystem::path(directory_.WeightsFile(stored.job.name())).parent_path().string()));
  }
  return absl::OkStatus();
}

void Worker::RunJob(const StoredJob& stored) {
  const std::string& name = stored.job.name();
  spdlog::info("worker: {} starts, attempt {}, on {}", name, stored.job.attempts(), device_);
  check_cancel_ = true;
  absl::StatusOr<LinearModel> model = TrainModel(stored);
  absl::Status status = model.ok() ? Finish(stored, *model) : GiveUp(stored, model.status());
  while (!status.ok()) {
    // The store could not take the outcome, so this attempt is lost and the job still RUNNING: treat it as a crash.
    spdlog::error("worker: {} could not be ended: {}", name, std::string(status.message()));
    if (stopping_) {
      return;
    }
    absl::SleepFor(kIdleWait);
    status = Recover();
  }
  progress_.Remove(name);
}

absl::StatusOr<LinearModel> Worker::TrainModel(const StoredJob& stored) {
  const std::string& name = stored.job.name();
  const v1::Plan& plan = stored.job.plan();
  progress_.Update(name, {"loading", 0, 0, absl::Now(), 0});
  try {
    const v1::TrainingSpec& spec = stored.job.spec();
    const absl::StatusOr<SealedGraph> sealed = SealedGraph::Open(directory_.DatasetFile(spec.dataset()));
    if (absl::IsNotFound(sealed.status()) || absl::IsFailedPrecondition(sealed.status())) {
      // The file could not be opened at all, or is of a newer program: a fault of the machine, not of the data.
      return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                       sealed.status().code() == absl::StatusCode::kNotFound
                           ? "the dataset's file cannot be opened"
                           : "the dataset's file was sealed by a newer program");
    }
    const absl::StatusOr<GraphView> graph = sealed.ok() ? sealed->View() : sealed.status();
    if (absl::IsDataLoss(graph.status())) {
      spdlog::error("worker: the sealed file of {} is damaged; dpard check says where", spec.dataset());
    }
    DPAR_RETURN_IF_ERROR(graph.status());
    const absl::Time start = absl::Now();
    progress_.Update(name, {"training", 0, plan.steps(), start, 0});
    // Fresh noise for every attempt: no output of an attempt that died left the trainer, so the same reservation
    // covers the next one.
    SecureRandom random;
    const auto on_step = [&](int64_t steps_done) {
      const absl::StatusOr<double> epsilon = EpsilonAfter(plan, steps_done);
      progress_.Update(name, {"training", steps_done, plan.steps(), start, epsilon.value_or(plan.epsilon())});
      return KeepGoing(name);
    };
    return Train(plan, *graph, device_, random, on_step);
  } catch (const std::exception&) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, kFailedAfterOpening);
  }
}

bool Worker::KeepGoing(const std::string& job) {
  if (stopping_) {
    return false;
  }
  if (!check_cancel_.exchange(false)) {
    return true;
  }
  bool cancelled = false;
  const absl::Status status = database_.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(transaction, job));
    cancelled = stored.cancel_requested;
    return absl::OkStatus();
  });
  if (!status.ok()) {
    check_cancel_ = true;  // look again at the next step
  }
  return !cancelled;
}

absl::Status Worker::Finish(const StoredJob& stored, const LinearModel& model) {
  const std::string& name = stored.job.name();
  progress_.Update(name, {"saving", 0, 0, absl::Now(), stored.job.plan().epsilon()});
  const std::string weights = directory_.WeightsFile(name);
  const std::string script = directory_.ScriptFile(name);
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(weights));
  DPAR_RETURN_IF_ERROR(WriteModelFile(weights, model));
  DPAR_RETURN_IF_ERROR(WriteTorchScript(script, model));
  JobOutput output;
  DPAR_ASSIGN_OR_RETURN(output.weights_sha256, Sha256File(weights));
  DPAR_ASSIGN_OR_RETURN(output.script_sha256, Sha256File(script));
  DPAR_ASSIGN_OR_RETURN(output.weights_bytes, FileSize(weights));
  DPAR_ASSIGN_OR_RETURN(output.script_bytes, FileSize(script));

  Statement statement;
  statement.subjects = {{"model.npz", output.weights_sha256}, {"model.pt", output.script_sha256}};
  statement.job = name;
  statement.dataset = stored.job.spec().dataset();
  statement.plan = stored.job.plan();
  statement.software = absl::StrCat("dpar ", DPAR_VERSION);

  // The files are on disk and synced but nobody can ask for them before this transaction makes the job SUCCEEDED. It
  // posts the price with it, so there is no output without its posted entry.
  DPAR_RETURN_IF_ERROR(database_.Write([&](Transaction& transaction) -> absl::Status {
    const EntryContext context = Now("worker");
    statement.created_at = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", context.time, absl::UTCTimeZone());
    DPAR_ASSIGN_OR_RETURN(const StoredDataset dataset, GetDataset(transaction, statement.dataset));
    statement.dataset_digest = dataset.dataset.content_digest();
    statement.sizes = {dataset.dataset.node_count(), dataset.dataset.feature_count(), dataset.dataset.class_count()};
    statement.is_public = dataset.dataset.is_public();
    if (!stored.budget_id.empty()) {
      DPAR_ASSIGN_OR_RETURN(const EntryPosition position,
                            Post(transaction, stored.budget_id, name, stored.job.attempts(), context));
      DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, GetBudget(transaction, stored.budget_id));
      statement.budget = absl::StrCat(statement.dataset, "/budget");
      statement.ledger_sequence = position.sequence;
      statement.ledger_hash = position.hash;
      statement.cap_epsilon = budget.cap_epsilon();
      statement.cap_delta = budget.cap_delta();
      statement.order = budget.order();
      statement.units = stored.job.plan().price_units();
    }
    DPAR_ASSIGN_OR_RETURN(output.envelope, SignStatement(statement, key_));
    return Succeed(transaction, name, stored.job.attempts(), output, context.time);
  }));
  spdlog::info("worker: {} succeeded", name);
  return absl::OkStatus();
}

absl::Status Worker::GiveUp(const StoredJob& stored, const absl::Status& cause) {
  const std::string& name = stored.job.name();
  return database_.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const StoredJob now, GetJob(transaction, name));
    if (absl::IsCancelled(cause) && now.cancel_requested) {
      spdlog::info("worker: {} cancelled", name);
      return VoidAndEnd(transaction, now, v1::Job::CANCELLED, "", "cancelled while it ran");
    }
    if (absl::IsCancelled(cause)) {
      spdlog::info("worker: {} put back into the queue", name);
      return Requeue(transaction, name, /*count_attempt=*/false);
    }
    if (absl::IsUnavailable(cause) && now.job.attempts() < options_.max_attempts) {
      spdlog::warn("worker: {} will be tried again: {}", name, std::string(cause.message()));
      return Requeue(transaction, name, /*count_attempt=*/true);
    }
    if (absl::IsUnavailable(cause)) {
      spdlog::error("worker: {} failed: {}", name, std::string(cause.message()));
      return VoidAndEnd(transaction, now, v1::Job::FAILED, kAttemptsUsedUp, "infrastructure failure, attempts used up");
    }
    spdlog::error("worker: {} failed", name);
    const EntryContext context = Now("worker");
    if (!now.budget_id.empty()) {
      DPAR_RETURN_IF_ERROR(Post(transaction, now.budget_id, name, now.job.attempts(), context).status());
    }
    return End(transaction, name, v1::Job::FAILED, std::string(kFailedAfterOpening), context.time);
  });
}

}  // namespace dpar
