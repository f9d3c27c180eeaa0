#include "core/plan/plan.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/appr/solver.h"
#include "core/error.h"
#include "core/plan/method.h"
#include "core/plan/noise.h"
#include "core/plan/options.h"
#include "core/plan/plan_event.h"
#include "core/plan/structure_work.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kMomentum = 0.9;
constexpr double kAdamLearningRate = 0.005;
constexpr int64_t kFewestSteps = 30;
constexpr int64_t kMostSteps = 150;
// The private mean is released at kMeanShare of mu, if sqrt(d) is below kMeanThreshold n mu.
constexpr double kMeanShare = 0.2;
constexpr double kMeanThreshold = 0.02;
// The class shares are released at kShiftShare of mu.
constexpr double kShiftShare = 0.1;
// For rows of at most unit length and a linear model, and for all others.
constexpr double kUnitRowClip = 0.3;
constexpr double kOtherClip = 1;
constexpr double kStructureShare = 0.1;
constexpr int64_t kApprNodes = 70;
constexpr int64_t kTopK = 2;
constexpr double kRowClip = 0.01;
constexpr double kEntryClip = 0.001;
constexpr double kColumnClip = 1;
constexpr int64_t kMaxOccurrence = 1;
constexpr double kNonPrivateMu = 2;  // without noise: epsilon 10 at delta 1e-5

absl::Status PlanEvaluation(const v1::TrainingSpec& spec, const PublicSizes& sizes, v1::Plan& plan) {
  plan.set_training_slots(sizes.node_count);
  if (!spec.has_evaluation()) {
    return absl::OkStatus();
  }
  const double share = spec.evaluation().held_out_share();
  const auto slots = static_cast<int64_t>(std::llround(share * static_cast<double>(sizes.node_count)));
  if (slots == 0 || slots == sizes.node_count) {
    return InvalidField("evaluation.held_out_share",
                        "evaluation.held_out_share leaves no slot to train or none to evaluate on; choose a share "
                        "nearer to 0.5");
  }
  plan.mutable_evaluation()->set_held_out_share(share);
  plan.mutable_evaluation()->set_held_out_slots(slots);
  plan.set_training_slots(sizes.node_count - slots);
  return absl::OkStatus();
}

void PlanStructure(const v1::TrainingOptions& options, const MethodTraits& method, v1::Plan& plan) {
  const double share = options.has_structure_share() ? options.structure_share() : kStructureShare;
  if (!method.structure.has_value() || share == 0) {
    return;
  }
  const ApprParameters solver;
  const int64_t n = plan.training_slots();
  const bool gaussian = method.structure == ApprMechanism::kGm;
  const bool has_clip = gaussian ? options.has_row_clip() : options.has_entry_clip();
  v1::StructurePlan& structure = *plan.mutable_structure();
  structure.set_share(share);
  const int64_t rows = plan.non_private() ? n : std::min(kApprNodes, n);
  structure.set_appr_nodes(options.has_appr_nodes() ? options.appr_nodes() : rows);
  structure.set_top_k(options.has_top_k() ? options.top_k() : std::min(kTopK, n));
  const double default_clip = gaussian ? kRowClip : kEntryClip;
  structure.set_clip(has_clip ? (gaussian ? options.row_clip() : options.entry_clip()) : default_clip);
  structure.set_alpha(options.has_alpha() ? options.alpha() : solver.alpha);
  structure.set_rho(options.has_rho() ? options.rho() : solver.rho);
  structure.set_gamma(options.has_gamma() ? options.gamma() : solver.gamma);
  structure.set_max_occurrence(options.has_max_occurrence() ? options.max_occurrence()
                                                            : (plan.non_private() ? n : kMaxOccurrence));
  structure.set_column_clip(options.has_column_clip() ? options.column_clip() : kColumnClip);
  structure.set_rows(options.rows() == v1::ROW_SET_UNSPECIFIED ? v1::APPR_AND_IDENTITY : options.rows());
}

absl::Status PlanRival(const v1::TrainingOptions& options, const MethodTraits& method, int64_t max_degree,
                       v1::Plan& plan) {
  if (!method.reads_edges) {
    return absl::OkStatus();
  }
  if (!plan.non_private()) {
    if (max_degree < 1) {
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
                       absl::StrCat("method ", method.name,
                                    " reads training edges, and this dataset has no degree promise to price that by. "
                                    "Upload it again with max_degree, or use a method that needs none: auto"),
                       {{"field", "method"}});
    }
    plan.set_max_degree(max_degree);
  }
  if (method.method == v1::SAGE) {
    plan.set_neighbours(options.neighbours());
    return absl::OkStatus();
  }
  v1::AggregationPlan& aggregation = *plan.mutable_aggregation();
  aggregation.set_hops(options.hops());
  if (plan.non_private()) {
    return absl::OkStatus();
  }
  // Up to about sqrt(D) / 2 the own row adds little to the price: sqrt(D + R^2) is 1.12 sqrt(D) there.
  const double clip = std::max(1.0, std::sqrt(static_cast<double>(max_degree)) / 2);
  aggregation.set_clip(options.has_aggregation_clip() ? options.aggregation_clip() : clip);
  aggregation.set_row_error(AggregationRowError(plan));
  return absl::OkStatus();
}

// The inner products of a row's inputs are all computed, and kept when there is a hidden layer.
absl::Status CheckInnerProducts(const v1::Plan& plan) {
  constexpr int64_t kMaxInnerProducts = 50'000'000;
  const int64_t k = plan.structure().top_k();
  if (plan.has_structure() && plan.structure().appr_nodes() > kMaxInnerProducts / (k * (k + 1) / 2)) {
    return InvalidField("options.top_k", absl::StrCat("options.appr_nodes * top_k * (top_k + 1) / 2 must be at most ",
                                                      kMaxInnerProducts, "; choose fewer entries or nodes"));
  }
  return absl::OkStatus();
}

absl::Status PlanBatches(const v1::TrainingOptions& options, v1::Plan& plan) {
  plan.set_rows_per_node(RowsPerNode(plan));
  plan.set_node_sampling_rate(options.has_node_sampling_rate() ? options.node_sampling_rate() : 1);
  const double rows = plan.node_sampling_rate() * static_cast<double>(RowCount(plan));
  plan.set_batch_size(options.has_batch_size() ? static_cast<double>(options.batch_size()) : rows);
  constexpr double kRoundingRoom = 1 + 1e-12;
  if (plan.batch_size() > rows * kRoundingRoom) {
    return InvalidField("options.batch_size",
                        absl::StrCat("options.batch_size must be at most the expected number of rows, ", rows, "; got ",
                                     options.batch_size()));
  }
  plan.set_sampling_rate(std::min(1.0, plan.batch_size() / rows));
  if (options.has_epochs()) {
    plan.set_steps(std::max<int64_t>(1, std::llround(options.epochs() * rows / plan.batch_size())));
    return ValidateRange("options.epochs", options.epochs(), 0.0,
                         static_cast<double>(kMaxSteps) * plan.batch_size() / rows);
  }
  return absl::OkStatus();
}

void PlanModel(const v1::TrainingOptions& options, v1::Plan& plan) {
  plan.set_hidden_size(options.hidden_size());
  plan.set_optimizer(options.optimizer() == v1::OPTIMIZER_UNSPECIFIED ? v1::SGD : options.optimizer());
  plan.set_transform(options.transform() == v1::TRANSFORM_UNSPECIFIED ? v1::SQRT_UNIT : options.transform());
  const bool unit_rows = plan.hidden_size() == 0 && plan.transform() != v1::RAW;
  plan.set_gradient_clip(options.has_gradient_clip() ? options.gradient_clip()
                                                     : (unit_rows ? kUnitRowClip : kOtherClip));
  plan.set_lattice_bits(kPlanLatticeBits);
  plan.set_summation_error(TrainingSummationError(plan));
}

// The Gaussian mu left for training, for the rule of plan.h: exact for full batches on own features, else an estimate.
absl::StatusOr<double> TrainingMu(const v1::TrainingSpec& spec, const v1::Plan& plan) {
  if (plan.non_private()) {
    return kNonPrivateMu;
  }
  const double share = plan.has_structure() ? plan.structure().share() : 0;
  DPAR_ASSIGN_OR_RETURN(double mu, GaussianMu((1 - share) * spec.epsilon(), spec.delta()));
  if (plan.has_evaluation()) {
    const double evaluation = 1 / plan.evaluation().noise_stddev();
    mu = std::sqrt(std::max(mu * mu - evaluation * evaluation, 1e-4 * mu * mu));
  }
  return mu / static_cast<double>(plan.rows_per_node());
}

// Returns the share of mu that is released as a private mean: kMeanShare or 0.
absl::StatusOr<double> PlanMean(const v1::TrainingSpec& spec, const v1::TrainingOptions& options,
                                const PublicSizes& sizes, double mu, v1::Plan& plan) {
  const double rows = plan.node_sampling_rate() * static_cast<double>(plan.training_slots());
  const bool pays = std::sqrt(static_cast<double>(sizes.feature_count)) < kMeanThreshold * rows * mu;
  const bool by_rule =
      pays && plan.hidden_size() == 0 && plan.transform() != v1::RAW && !FindMethod(plan.method())->reads_edges;
  if (!(options.has_center() ? options.center() : by_rule && spec.preset() != v1::PAPER)) {
    return 0.0;
  }
  plan.mutable_mean()->set_summation_error(UnitSummationError(plan));
  if (!plan.non_private()) {
    DPAR_RETURN_IF_ERROR(CalibrateMean(kMeanShare * mu, sizes, plan));
  }
  return kMeanShare;
}

// Returns the share of mu that is released as class shares: kShiftShare or 0.
absl::StatusOr<double> PlanShares(const v1::TrainingOptions& options, const PublicSizes& sizes, double mu,
                                  v1::Plan& plan) {
  if (!(options.has_shift() ? options.shift() : !FindMethod(plan.method())->reads_edges)) {
    return 0.0;
  }
  plan.mutable_class_shares()->set_summation_error(UnitSummationError(plan));
  if (!plan.non_private()) {
    DPAR_RETURN_IF_ERROR(CalibrateShares(kShiftShare * mu, sizes, plan));
  }
  return kShiftShare;
}

void PlanSteps(const v1::TrainingOptions& options, double mu, v1::Plan& plan) {
  const double rows = plan.node_sampling_rate() * static_cast<double>(plan.training_slots());
  const double reach = 0.38 * std::pow(rows * mu, 0.85);
  if (options.has_steps()) {
    plan.set_steps(options.steps());
  } else if (!options.has_epochs()) {
    plan.set_steps(std::clamp(std::llround(3 * std::sqrt(reach)), static_cast<long long>(kFewestSteps),
                              static_cast<long long>(kMostSteps)));
  }
  if (plan.optimizer() == v1::ADAM) {
    plan.set_learning_rate(options.has_learning_rate() ? options.learning_rate() : kAdamLearningRate);
    return;
  }
  plan.set_momentum(options.has_momentum() ? options.momentum() : kMomentum);
  plan.set_learning_rate(options.has_learning_rate()
                             ? options.learning_rate()
                             : reach / (static_cast<double>(plan.steps()) * plan.gradient_clip()));
}

// The noise of all steps in a logit of an input of length 1; 10 lr T C / (mu' n) for the rule. Adam's steps are about
// the learning rate each, whatever the noise.
double LogitNoise(const v1::Plan& plan) {
  const double walk = plan.learning_rate() * std::sqrt(static_cast<double>(plan.steps()));
  if (plan.non_private()) {
    return 0;
  }
  return plan.optimizer() == v1::ADAM
             ? walk
             : walk * plan.noise_multiplier() * plan.gradient_clip() / ((1 - plan.momentum()) * plan.batch_size());
}

absl::Status CheckPlanningTime(const v1::Plan& plan, double max_seconds) {
  const double seconds = PlanningSeconds(plan);
  if (seconds <= max_seconds) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
      absl::StrCat("planning this job would take about ", std::ceil(seconds), " seconds and may take ", max_seconds,
                   "; choose a smaller max_occurrence, no node_sampling_rate, or full batches"),
      {{"limit", "max_planning_seconds"},
       {"maximum", absl::StrCat(max_seconds)},
       {"estimate", absl::StrCat(std::ceil(seconds))}});
}

absl::Status PlanNoise(const v1::TrainingSpec& spec, const PublicSizes& sizes, const KeepGoing& keep_going,
                       v1::Plan& plan) {
  if (plan.non_private()) {
    return absl::OkStatus();
  }
  if (spec.preset() == v1::PAPER) {
    DPAR_RETURN_IF_ERROR(CalibrateAsPublished(spec.epsilon(), sizes, plan));
  } else {
    if (plan.has_structure()) {
      DPAR_RETURN_IF_ERROR(CalibrateStructure(plan.structure().share() * plan.epsilon(), plan, keep_going));
    }
    DPAR_RETURN_IF_ERROR(CalibrateTraining(sizes, plan, keep_going));
  }
  if (plan.accountant() == v1::AS_PUBLISHED) {
    DPAR_ASSIGN_OR_RETURN(const double published, PublishedEpsilon(plan));
    plan.set_published_epsilon(published);
  }
  return absl::OkStatus();
}

}  // namespace

double PlanningSeconds(const v1::Plan& plan) {
  constexpr double kOfAnyPlan = 1;
  constexpr double kOfRow = 0.3;
  constexpr double kOfNodeSample = 6;
  if (plan.non_private()) {
    return 0;
  }
  const double rows = plan.sampling_rate() < 1 ? static_cast<double>(plan.rows_per_node()) : 1;
  return kOfAnyPlan + kOfRow * rows * (plan.node_sampling_rate() < 1 ? kOfNodeSample : 1);
}

absl::StatusOr<v1::Plan> MakePlan(const v1::TrainingSpec& spec, const PublicSizes& sizes, int64_t max_degree,
                                  const PlanningBounds& bounds) {
  DPAR_RETURN_IF_ERROR(ValidateSpec(spec, sizes));
  const bool automatic = spec.method() == v1::AUTO || spec.method() == v1::METHOD_UNSPECIFIED;
  const MethodTraits& method = *FindMethod(automatic ? v1::FEATURES : spec.method());
  v1::Plan plan;
  plan.set_method(method.method);
  plan.set_non_private(spec.non_private());
  plan.set_epsilon(spec.epsilon());
  plan.set_delta(spec.non_private() ? 0 : spec.delta());
  plan.set_accountant(spec.preset() == v1::PAPER && !spec.non_private() ? v1::AS_PUBLISHED
                                                                        : std::max(spec.accountant(), v1::SOUND));
  DPAR_RETURN_IF_ERROR(PlanEvaluation(spec, sizes, plan));
  DPAR_ASSIGN_OR_RETURN(const v1::TrainingOptions options, ResolveOptions(spec, method, sizes, plan.training_slots()));
  if (method.reads_edges && plan.has_evaluation()) {
    return InvalidField(
        "evaluation", absl::StrCat("a charged evaluation predicts from a node's own features, and method ", method.name,
                                   " does not; leave evaluation unset"));
  }
  PlanStructure(options, method, plan);
  DPAR_RETURN_IF_ERROR(CheckInnerProducts(plan));
  DPAR_RETURN_IF_ERROR(CheckStructureWork(plan));
  PlanModel(options, plan);
  DPAR_RETURN_IF_ERROR(PlanRival(options, method, max_degree, plan));
  DPAR_RETURN_IF_ERROR(PlanBatches(options, plan));
  DPAR_RETURN_IF_ERROR(CheckPlanningTime(plan, bounds.max_seconds));
  if (plan.has_evaluation() && !plan.non_private()) {
    if (spec.preset() == v1::PAPER) {
      return InvalidField("evaluation", "the preset PAPER has no charged evaluation; leave it unset");
    }
    DPAR_RETURN_IF_ERROR(
        CalibrateEvaluation(spec.evaluation().budget_share() * spec.epsilon(), plan, bounds.keep_going));
  }
  DPAR_ASSIGN_OR_RETURN(const double mu, TrainingMu(spec, plan));
  DPAR_ASSIGN_OR_RETURN(const double mean, PlanMean(spec, options, sizes, mu, plan));
  DPAR_ASSIGN_OR_RETURN(const double shares, PlanShares(options, sizes, mu, plan));
  PlanSteps(options, mu * std::sqrt(1 - mean * mean - shares * shares), plan);
  DPAR_RETURN_IF_ERROR(PlanNoise(spec, sizes, bounds.keep_going, plan));
  plan.set_logit_noise(LogitNoise(plan));
  return plan;
}

}  // namespace dpar
