#include "server/worker/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/graph/sealed_graph.h"
#include "core/infer/model.h"
#include "core/parallel.h"
#include "core/plan/plan_event.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/device.h"
#include "core/train/torch_script.h"
#include "server/ledger/entries.h"
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

// A fault of the machine, worth another attempt.
absl::Status Unavailable(absl::string_view message) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, message);
}

absl::StatusOr<int64_t> FileSize(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return Unavailable(absl::StrCat("cannot size ", path, ": ", error.message()));
  }
  return static_cast<int64_t>(size);
}

// What steps cost, for progress. All of them cost the plan's epsilon, unless a part of it is the evaluation's.
EpsilonSource EpsilonOf(const v1::Plan& plan, const PublicSizes& sizes) {
  EpsilonSource source;
  source.of_steps = [plan, sizes](int64_t steps) {
    return std::min(plan.epsilon(), EpsilonAfter(plan, sizes, steps).value_or(plan.epsilon()));
  };
  if (!plan.has_evaluation()) {
    source.of_all = plan.epsilon();
  }
  return source;
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
    DPAR_RETURN_IF_ERROR(RemoveFiles(stored.job.name()));
  }
  return absl::OkStatus();
}

void Worker::RunJob(const StoredJob& stored) {
  const std::string& name = stored.job.name();
  spdlog::info("worker: {} starts, attempt {}, on {}", name, stored.job.attempts(), device_);
  cancelled_ = false;
  check_cancel_ = true;
  absl::StatusOr<JobOutput> output = RunAttempt(stored);
  absl::Status status = output.ok() ? Finish(stored, *std::move(output)) : GiveUp(stored, output.status());
  if (absl::IsCancelled(status)) {
    status = GiveUp(stored, status);
  }
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

absl::StatusOr<JobOutput> Worker::RunAttempt(const StoredJob& stored) {
  try {
    DPAR_ASSIGN_OR_RETURN(const TrainedModel trained, TrainModel(stored));
    return Save(stored, trained);
  } catch (const std::exception&) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, kFailedAfterOpening);
  }
}

absl::StatusOr<TrainedModel> Worker::TrainModel(const StoredJob& stored) {
  const std::string& name = stored.job.name();
  const v1::Plan& plan = stored.job.plan();
  progress_.Update(name, {"loading", 0, 0, absl::Now(), 0});
  const v1::TrainingSpec& spec = stored.job.spec();
  const absl::StatusOr<SealedGraph> sealed = SealedGraph::Open(directory_.DatasetFile(spec.dataset()));
  if (absl::IsNotFound(sealed.status()) || absl::IsFailedPrecondition(sealed.status())) {
    // The file could not be opened at all, or is of a newer program: a fault of the machine, not of the data.
    return Unavailable(sealed.status().code() == absl::StatusCode::kNotFound
                           ? "the dataset's file cannot be opened"
                           : "the dataset's file was sealed by a newer program");
  }
  const absl::StatusOr<GraphView> graph = sealed.ok() ? sealed->View() : sealed.status();
  if (absl::IsDataLoss(graph.status())) {
    spdlog::error("worker: the sealed file of {} is damaged; dpard check says where", spec.dataset());
  }
  DPAR_RETURN_IF_ERROR(graph.status());
  TrainingProgress progress(progress_, name, EpsilonOf(plan, graph->sizes));
  TrainingCallbacks callbacks;
  callbacks.keep_going = [&] { return KeepGoing(name); };
  callbacks.on_progress = [&](TrainingStage stage, int64_t completed, int64_t total) {
    progress.Report(stage, completed, total);
  };
  // Fresh noise for every attempt: no output of an attempt that died left the trainer, so the same reservation covers
  // the next one.
  SecureRandom random;
  absl::StatusOr<TrainedModel> trained = Train(plan, *graph, {device_, HardwareThreads()}, random, callbacks);
  unfinished_epsilon_ = progress.TakeUnfinished();
  return trained;
}

bool Worker::KeepGoing(const std::string& job) {
  if (stopping_ || cancelled_) {
    return false;
  }
  // Of the threads that see a notice, one asks the store.
  if (!check_cancel_ || !check_cancel_.exchange(false)) {
    return true;
  }
  const absl::Status status = database_.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(transaction, job));
    if (stored.cancel_requested) {
      cancelled_ = true;  // never back to false: an older answer may arrive later
    }
    return absl::OkStatus();
  });
  if (!status.ok()) {
    check_cancel_ = true;  // look again the next time
  }
  return !cancelled_;
}

absl::StatusOr<JobOutput> Worker::Save(const StoredJob& stored, const TrainedModel& trained) {
  progress_.Update(stored.job.name(), {"saving", 0, 0, absl::Now(), stored.job.plan().epsilon()});
  // A model that is none would be the data's fault; whatever fails after this is the machine's.
  DPAR_RETURN_IF_ERROR(ValidateModel(trained.model));
  JobOutput output;
  output.evaluation = trained.evaluation;
  const absl::Status written = WriteFiles(stored.job.name(), trained.model, output);
  if (!written.ok() && !absl::IsCancelled(written)) {
    return Unavailable(written.message());
  }
  DPAR_RETURN_IF_ERROR(written);
  return output;
}

absl::Status Worker::WriteFiles(const std::string& job, const Model& model, JobOutput& output) {
  const std::string weights = directory_.WeightsFile(job);
  const std::string script = directory_.ScriptFile(job);
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(weights));
  DPAR_RETURN_IF_ERROR(WriteModelFile(weights, model));
  if (!KeepGoing(job)) {
    return absl::CancelledError("the job was cancelled while it was saved");
  }
  DPAR_RETURN_IF_ERROR(WriteTorchScript(script, model));
  DPAR_ASSIGN_OR_RETURN(output.weights_sha256, Sha256File(weights));
  DPAR_ASSIGN_OR_RETURN(output.script_sha256, Sha256File(script));
  DPAR_ASSIGN_OR_RETURN(output.weights_bytes, FileSize(weights));
  DPAR_ASSIGN_OR_RETURN(output.script_bytes, FileSize(script));
  return absl::OkStatus();
}

absl::Status Worker::Finish(const StoredJob& stored, JobOutput output) {
  const std::string& name = stored.job.name();
  Statement statement;
  statement.subjects = {{"model.npz", output.weights_sha256}, {"model.pt", output.script_sha256}};
  statement.job = name;
  statement.dataset = stored.job.spec().dataset();
  statement.plan = stored.job.plan();
  statement.evaluation = output.evaluation;
  statement.software = absl::StrCat("dpar ", DPAR_VERSION);

  // The files are on disk and synced but nobody can ask for them before this transaction makes the job SUCCEEDED. It
  // posts the price with it, so there is no output without its posted entry.
  DPAR_RETURN_IF_ERROR(database_.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const StoredJob now, GetJob(transaction, name));
    if (now.cancel_requested) {
      return absl::CancelledError("the job was cancelled before its model was released");
    }
    const EntryContext context = Now("worker");
    statement.created_at = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", context.time, absl::UTCTimeZone());
    DPAR_ASSIGN_OR_RETURN(const StoredDataset dataset, GetDataset(transaction, statement.dataset));
    statement.dataset_digest = dataset.dataset.content_digest();
    statement.sizes = {dataset.dataset.node_count(), dataset.dataset.feature_count(), dataset.dataset.class_count()};
    statement.is_public = dataset.dataset.is_public();
    if (!stored.budget_id.empty()) {
      DPAR_ASSIGN_OR_RETURN(const EntryPosition position,
                            Post(transaction, stored.budget_id, name, stored.job.attempts(), context));
      DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, stored.budget_id));
      statement.budget = absl::StrCat(statement.dataset, "/budget");
      statement.ledger_sequence = position.sequence;
      statement.ledger_hash = position.hash;
      statement.cap_epsilon = account.terms.cap_epsilon;
      statement.cap_delta = account.terms.cap_delta;
      statement.order = account.terms.order;
      statement.units = stored.job.plan().price_units();
    }
    DPAR_ASSIGN_OR_RETURN(output.envelope, SignStatement(statement, key_));
    return Succeed(transaction, name, stored.job.attempts(), output, context.time);
  }));
  spdlog::info("worker: {} succeeded", name);
  return absl::OkStatus();
}

absl::Status Worker::RemoveFiles(const std::string& job) const {
  return RemoveTree(std::filesystem::path(directory_.WeightsFile(job)).parent_path().string());
}

absl::Status Worker::GiveUp(const StoredJob& stored, const absl::Status& cause) {
  const std::string& name = stored.job.name();
  DPAR_RETURN_IF_ERROR(RemoveFiles(name));
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
