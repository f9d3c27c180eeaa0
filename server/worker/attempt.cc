#include "server/worker/attempt.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/graph/sealed_graph.h"
#include "core/infer/model.h"
#include "core/infer/onnx_file.h"
#include "core/infer/safetensors_file.h"
#include "core/plan/plan_event.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/torch_script.h"
#include "server/files.h"
#include "server/seam.h"
#include "server/worker/earliest_end.h"

namespace dpar {
namespace {

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

// The price of steps, for progress: the plan's epsilon less the evaluation's part.
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

}  // namespace

void Attempt::Stop(StopCause cause) {
  StopCause none = StopCause::kNone;
  cause_.compare_exchange_strong(none, cause);
}

absl::StatusOr<JobOutput> Attempt::Run() {
  try {
    DPAR_ASSIGN_OR_RETURN(TrainedModel trained, TrainModel());
    trained.model.schema = schema_;
    DPAR_SEAM("trained");
    return Save(trained);
  } catch (const std::exception&) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "training ended by an exception");
  }
}

absl::StatusOr<TrainedModel> Attempt::TrainModel() {
  const std::string& name = stored_.job.name();
  const v1::Plan& plan = stored_.job.plan();
  progress_.Update(name, {"loading", 0, 0, absl::Now(), 0});
  const v1::TrainingSpec& spec = stored_.job.spec();
  const absl::StatusOr<SealedGraph> sealed = SealedGraph::Open(directory_.DatasetFile(spec.dataset()));
  if (absl::IsNotFound(sealed.status()) || absl::IsFailedPrecondition(sealed.status())) {
    // The file cannot be opened or is of a newer program: the machine's fault, not the data's.
    return Unavailable(sealed.status().code() == absl::StatusCode::kNotFound
                           ? "the dataset's file cannot be opened"
                           : "the dataset's file was sealed by a newer program");
  }
  const auto keep_going = [this] { return cause_ == StopCause::kNone; };
  opened_ = true;
  const absl::StatusOr<GraphView> graph = sealed.ok() ? sealed->View(keep_going) : sealed.status();
  if (absl::IsDataLoss(graph.status())) {
    opened_ = false;
    spdlog::error("worker: the sealed file of {} is damaged; dpard check says where", spec.dataset());
  }
  DPAR_RETURN_IF_ERROR(graph.status());
  TrainingProgress progress(progress_, name, EpsilonOf(plan, graph->sizes));
  TrainingCallbacks callbacks;
  callbacks.keep_going = keep_going;
  EarliestEnd earliest_end;
  callbacks.on_progress = [&](TrainingStage stage, int64_t completed, int64_t total) {
    if (completed == 0) {
      earliest_end.Begin();
    }
    progress.Report(stage, completed, total);
  };
  // Public data has nothing to hide.
  if (!stored_.population.empty()) {
    callbacks.await_stage_age = [&](double seconds) { earliest_end.Await(absl::Seconds(seconds), keep_going); };
  }
  const std::unique_ptr<RandomSource> random = MakeStream();
  absl::StatusOr<TrainedModel> trained = Train(plan, *graph, options_, *random, callbacks);
  unfinished_epsilon_ = progress.TakeUnfinished();
  return trained;
}

// Fresh noise from the kernel's seed for every attempt. The caller's seed counts only without a budget: public data.
std::unique_ptr<RandomSource> Attempt::MakeStream() const {
  const v1::TrainingSpec& spec = stored_.job.spec();
  if (stored_.population.empty() && spec.has_seed()) {
    return ReproducibleRandom(spec.seed());
  }
  return std::make_unique<SecureRandom>();
}

absl::StatusOr<JobOutput> Attempt::Save(const TrainedModel& trained) {
  progress_.Update(stored_.job.name(), {"saving", 0, 0, absl::Now(), stored_.job.plan().epsilon()});
  // An invalid model is the data's fault; later failures are the machine's.
  DPAR_RETURN_IF_ERROR(ValidateModel(trained.model));
  JobOutput output;
  output.evaluation = trained.evaluation;
  output.lease = stored_.lease;
  const absl::Status written = WriteFiles(trained.model, output);
  if (!written.ok() && !absl::IsCancelled(written)) {
    return Unavailable(written.message());
  }
  DPAR_RETURN_IF_ERROR(written);
  return output;
}

absl::Status Attempt::WriteFiles(const Model& model, JobOutput& output) {
  struct Format {
    const char* name;
    absl::Status (*write)(const std::string& path, const Model& model);
  };
  std::vector<Format> formats = {
      {kWeightsName, WriteModelFile}, {kSafetensorsName, WriteSafetensorsFile}, {kScriptName, WriteTorchScript}};
  if (FitsOnnx(model)) {
    formats.push_back({kOnnxName, WriteOnnxFile});
  }
  for (const Format& format : formats) {
    const std::string path = directory_.ModelFile(stored_.job.name(), stored_.lease, format.name);
    DPAR_RETURN_IF_ERROR(MakeParentDirectory(path));
    DPAR_RETURN_IF_ERROR(format.write(path, model));
    DPAR_SEAM("model-file-written");
    if (cause_ != StopCause::kNone) {
      return absl::CancelledError("the attempt was stopped while it was saved");
    }
    OutputFile& file = output.files[format.name];
    DPAR_ASSIGN_OR_RETURN(file.sha256, Sha256File(path));
    DPAR_ASSIGN_OR_RETURN(file.bytes, FileSize(path));
  }
  return absl::OkStatus();
}

}  // namespace dpar
