#include "core/plan/options.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/appr/solver.h"
#include "core/error.h"
#include "core/plan/plan_event.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/published.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

using google::protobuf::FieldDescriptor;

constexpr int64_t kMaxHiddenSize = 4096;
constexpr int64_t kMaxParameters = int64_t{1} << 30;
constexpr double kMinNodeSamplingRate = 1e-6;
constexpr int64_t kMaxStructureFeatures = int64_t{1} << 24;  // within the rounding bounds of rows with several slots

// The paper's experiments (section 5.1 and figure captions). tau and the column cap, which it leaves open, rarely bind.
v1::TrainingOptions PaperOptions(const MethodTraits& method, int64_t training_slots) {
  v1::TrainingOptions options;
  options.set_node_sampling_rate(0.09);
  options.set_batch_size(60);
  options.set_epochs(200);
  options.set_learning_rate(0.005);
  options.set_gradient_clip(1);
  options.set_hidden_size(32);
  options.set_optimizer(v1::ADAM);
  options.set_transform(v1::RAW);
  options.set_center(false);
  options.set_shift(false);
  if (method.structure.has_value()) {
    options.set_structure_share(0.5);
    options.set_top_k(std::min<int64_t>(2, training_slots));
    options.set_appr_nodes(std::min<int64_t>(70, training_slots));
    (method.structure == ApprMechanism::kGm) ? options.set_row_clip(0.01) : options.set_entry_clip(0.001);
    options.set_column_clip(1);
    options.set_max_occurrence(2);
    options.set_alpha(0.25);
    options.set_rho(1e-4);
    options.set_gamma(1e-4);
    options.set_rows(v1::APPR_AND_IDENTITY);
  }
  return options;
}

// What the papers' released code trains with, whatever the preset. GAP: its node-private configuration. SAGE: 3,000
// steps on batches of a ninth of the slots (10,000 of 90,941), at most 5 neighbours, 100 hidden units. C is 1: GAP's
// value, and in place of SAGE's quantile of private gradients.
v1::TrainingOptions RivalOptions(const v1::TrainingSpec& spec, const MethodTraits& method, int64_t training_slots) {
  v1::TrainingOptions options;
  options.set_gradient_clip(1);
  options.set_optimizer(v1::ADAM);
  if (spec.preset() == v1::PAPER) {
    options.set_transform(v1::RAW);
  }
  const double rate = spec.options().has_node_sampling_rate() ? spec.options().node_sampling_rate() : 1;
  const double rows = std::max(1.0, std::floor(rate * static_cast<double>(training_slots)));
  if (method.method == v1::GAP) {
    options.set_hops(2);
    options.set_hidden_size(16);
    options.set_batch_size(static_cast<int64_t>(std::min(256.0, rows)));
    options.set_epochs(100);
    options.set_learning_rate(0.01);
  } else {
    options.set_neighbours(5);
    options.set_hidden_size(100);
    options.set_batch_size(static_cast<int64_t>(std::max(1.0, std::floor(rows / 9))));
    options.set_steps(3000);
    options.set_learning_rate(0.003);
  }
  return options;
}

bool ReadsOwn(const MethodTraits& method, const std::string& name) {
  if (name == "hops" || name == "aggregation_clip") {
    return method.method == v1::GAP;
  }
  return name == "neighbours" ? method.method == v1::SAGE
                              : !(method.reads_edges && (name == "center" || name == "shift"));
}

bool Reads(const MethodTraits& method, const std::string& name) {
  static constexpr absl::string_view kStructureOptions[] = {
      "structure_share", "top_k", "appr_nodes", "row_clip", "entry_clip", "column_clip",
      "max_occurrence",  "alpha", "rho",        "gamma",    "rows"};
  if (!ReadsOwn(method, name)) {
    return false;
  }
  if (!method.structure.has_value()) {
    return std::find(std::begin(kStructureOptions), std::end(kStructureOptions), name) == std::end(kStructureOptions);
  }
  return name != (method.structure == ApprMechanism::kGm ? "entry_clip" : "row_clip");
}

absl::Status RefuseWhatIsNotRead(const v1::TrainingOptions& options, const MethodTraits& method) {
  std::vector<const FieldDescriptor*> fields;
  options.GetReflection()->ListFields(options, &fields);
  for (const FieldDescriptor* field : fields) {
    if (!Reads(method, field->name())) {
      return InvalidField(absl::StrCat("options.", field->name()),
                          absl::StrCat("method ", method.name, " does not read ", field->name()));
    }
  }
  return absl::OkStatus();
}

// A preset's field gives way to a request's field that excludes it.
v1::TrainingOptions Merge(v1::TrainingOptions preset, const v1::TrainingOptions& asked) {
  if (asked.has_steps()) {
    preset.clear_epochs();
  }
  if (asked.has_epochs()) {
    preset.clear_steps();
  }
  preset.MergeFrom(asked);
  return preset;
}

struct OptionRange {
  const char* name;
  double low;
  double high;
};
constexpr OptionRange kRanges[] = {
    {"learning_rate", 1e-9, 1e9},
    {"gradient_clip", kMinGradientClip, kMaxGradientClip},
    {"aggregation_clip", kMinAggregationClip, kMaxAggregationClip},
    {"node_sampling_rate", kMinNodeSamplingRate, 1},
    {"row_clip", 1e-12, 1e6},
    {"entry_clip", 1e-12, 1e6},
    {"column_clip", 1e-12, 1e12},
};

absl::Status ValidateRanges(const v1::TrainingOptions& options) {
  for (const OptionRange& range : kRanges) {
    const FieldDescriptor* field = options.GetDescriptor()->FindFieldByName(range.name);
    if (options.GetReflection()->HasField(options, field)) {
      DPAR_RETURN_IF_ERROR(ValidateRange(absl::StrCat("options.", range.name),
                                         options.GetReflection()->GetDouble(options, field), range.low, range.high));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateTraining(const v1::TrainingOptions& options, const PublicSizes& sizes) {
  DPAR_RETURN_IF_ERROR(ValidateRange("options.steps", options.has_steps() ? options.steps() : 1, 1, kMaxSteps));
  if (options.has_steps() && options.has_epochs()) {
    return InvalidField("options.epochs", "options.epochs and options.steps exclude each other; set one of them");
  }
  if (options.has_epochs()) {
    DPAR_RETURN_IF_ERROR(ValidatePositive("options.epochs", options.epochs(), kMaxSteps));
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("options.momentum", options.momentum(), 0.0, 0.999));
  DPAR_RETURN_IF_ERROR(ValidateRange("options.hidden_size", options.hidden_size(), 0, kMaxHiddenSize));
  const int64_t width = options.hidden_size() > 0 ? options.hidden_size() : sizes.class_count;
  if (sizes.feature_count + 1 > kMaxParameters / width ||
      (options.hidden_size() > 0 && sizes.class_count > kMaxParameters / width)) {
    return InvalidField(
        "options.hidden_size",
        absl::StrCat("a model of ", sizes.feature_count, " features, ", options.hidden_size(), " hidden units and ",
                     sizes.class_count, " classes has more than ", kMaxParameters, " weights in a layer"));
  }
  if (!v1::Optimizer_IsValid(options.optimizer())) {
    return InvalidField("options.optimizer", "options.optimizer must be SGD or ADAM");
  }
  if (options.optimizer() == v1::ADAM && options.has_momentum()) {
    return InvalidField("options.momentum", "options.momentum belongs to the optimizer SGD; ADAM does not read it");
  }
  if (!v1::Transform_IsValid(options.transform())) {
    return InvalidField("options.transform", "options.transform must be RAW, UNIT or SQRT_UNIT");
  }
  if (options.center() && options.transform() == v1::RAW) {
    return InvalidField("options.center",
                        "options.center needs rows of unit length; transform RAW does not scale them");
  }
  return absl::OkStatus();
}

absl::Status ValidateRival(const v1::TrainingOptions& options, const MethodTraits& method, const PublicSizes& sizes) {
  if (method.method == v1::SAGE) {
    const int64_t width = options.hidden_size() > 0 ? options.hidden_size() : sizes.class_count;
    if (2 * sizes.feature_count + 1 > kMaxParameters / width || 2 * sizes.feature_count >= kMaxStructureFeatures) {
      return InvalidField("method", absl::StrCat("method sage takes up to ", kMaxStructureFeatures / 2,
                                                 " features, and ", kMaxParameters, " weights in a layer"));
    }
    return ValidateRange("options.neighbours", options.neighbours(), 1, kMaxSampledNeighbours);
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("options.hops", options.hops(), 1, kMaxHops));
  return ValidateRange("options.hidden_size", options.hidden_size(), 1, kMaxHiddenSize);
}

v1::TrainingOptions WithDefaults(const v1::TrainingSpec& spec, const MethodTraits& method, int64_t training_slots) {
  if (method.reads_edges) {
    return Merge(RivalOptions(spec, method, training_slots), spec.options());
  }
  return spec.preset() == v1::PAPER ? Merge(PaperOptions(method, training_slots), spec.options()) : spec.options();
}

absl::Status ValidateStructure(const v1::TrainingOptions& options, int64_t n) {
  DPAR_RETURN_IF_ERROR(ValidateRange("options.structure_share", options.structure_share(), 0.0, 1.0));
  if (options.structure_share() == 1) {
    return InvalidField("options.structure_share",
                        "options.structure_share must be below 1: training needs a share too");
  }
  const int64_t k = options.has_top_k() ? options.top_k() : 1;
  const int64_t m = options.has_appr_nodes() ? options.appr_nodes() : 1;
  DPAR_RETURN_IF_ERROR(ValidateRange("options.top_k", k, 1, std::min(kMaxTopK, n)));
  DPAR_RETURN_IF_ERROR(ValidateRange("options.appr_nodes", m, 1, n));
  if (options.has_max_occurrence()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("options.max_occurrence", options.max_occurrence(), 1, kMaxEventRows - 1));
  }
  if (!v1::RowSet_IsValid(options.rows())) {
    return InvalidField("options.rows", "options.rows must be APPR_AND_IDENTITY or APPR_ONLY");
  }
  if (options.rows() == v1::APPR_ONLY && options.has_structure_share() && options.structure_share() == 0) {
    return InvalidField("options.rows",
                        "options.rows APPR_ONLY needs a structure_share above 0: there would be no rows");
  }
  ApprParameters solver;
  solver.alpha = options.has_alpha() ? options.alpha() : solver.alpha;
  solver.rho = options.has_rho() ? options.rho() : solver.rho;
  solver.gamma = options.has_gamma() ? options.gamma() : solver.gamma;
  const absl::Status status = ValidateParameters(solver);
  return status.ok() ? status
                     : InvalidField(absl::StrCat("options.", GetErrorInfo(status)->metadata().at("field")),
                                    absl::StrCat("options.", status.message()));
}

}  // namespace

absl::Status ValidateSpec(const v1::TrainingSpec& spec, const PublicSizes& sizes) {
  constexpr int64_t kMost = int64_t{1} << 31;
  DPAR_RETURN_IF_ERROR(ValidateRange("node_count", sizes.node_count, int64_t{1}, kMost - 1));
  DPAR_RETURN_IF_ERROR(ValidateRange("feature_count", sizes.feature_count, int64_t{1}, kMost));
  DPAR_RETURN_IF_ERROR(ValidateRange("class_count", sizes.class_count, int64_t{2}, kMost));
  if (!v1::Method_IsValid(spec.method())) {
    return InvalidField("method", absl::StrCat("method is unknown; use ", MethodNames()));
  }
  if (!v1::Accountant_IsValid(spec.accountant())) {
    return InvalidField("accountant", "accountant must be SOUND or AS_PUBLISHED");
  }
  if (!v1::Preset_IsValid(spec.preset())) {
    return InvalidField("preset", "preset must be PAPER or unset");
  }
  if (spec.has_evaluation()) {
    DPAR_RETURN_IF_ERROR(ValidateProbability("evaluation.held_out_share", spec.evaluation().held_out_share()));
    DPAR_RETURN_IF_ERROR(ValidateProbability("evaluation.budget_share", spec.evaluation().budget_share()));
  }
  if (spec.non_private()) {
    if (spec.epsilon() != 0 || spec.accountant() == v1::AS_PUBLISHED) {
      return InvalidField("non_private", "non_private draws no noise; leave epsilon and accountant unset");
    }
    return absl::OkStatus();
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("epsilon", spec.epsilon(), kMinEpsilon, kMaxEpsilon));
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", spec.delta()));
  return ValidateRange("delta", spec.delta(), kMinDelta, 1.0);
}

absl::StatusOr<v1::TrainingOptions> ResolveOptions(const v1::TrainingSpec& spec, const MethodTraits& method,
                                                   const PublicSizes& sizes, int64_t training_slots) {
  DPAR_RETURN_IF_ERROR(RefuseWhatIsNotRead(spec.options(), method));
  const v1::TrainingOptions options = WithDefaults(spec, method, training_slots);
  DPAR_RETURN_IF_ERROR(ValidateRanges(options));
  DPAR_RETURN_IF_ERROR(ValidateTraining(options, sizes));
  if (method.reads_edges) {
    DPAR_RETURN_IF_ERROR(ValidateRival(options, method, sizes));
  }
  if (options.has_batch_size()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("options.batch_size", options.batch_size(), 1, training_slots));
  }
  if (method.structure.has_value() && sizes.feature_count > kMaxStructureFeatures) {
    return InvalidField("method", absl::StrCat("method ", method.name, " takes up to ", kMaxStructureFeatures,
                                               " features; use features"));
  }
  DPAR_RETURN_IF_ERROR(ValidateStructure(options, training_slots));
  return options;
}

}  // namespace dpar
