#include "core/plan/plan_event.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/fault.h"
#include "core/plan/method.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// g sqrt(D), which rounding to the lattice can add to the distance of two sums.
double LatticeError(double noise_stddev, int lattice_bits, double dimensions) {
  return std::ldexp(noise_stddev, -lattice_bits) * std::sqrt(dimensions);
}

absl::StatusOr<v1::PrivacyEvent> TrainingEvent(const v1::Plan& plan, int64_t weights, int64_t steps) {
  const double clip = plan.gradient_clip();
  const double noise = plan.noise_multiplier() * clip;
  const double rounding =
      LatticeError(noise, plan.lattice_bits(), static_cast<double>(weights)) + 2 * plan.summation_error();
  const bool rows_change = DPAR_FAULT(kChangedRowsOnce, false, plan.method() == v1::SAGE);
  if (plan.sampling_rate() == 1) {
    // A row that changes moves the sum twice as far as one that vanishes.
    const int64_t rows = plan.rows_per_node() + (rows_change ? plan.max_degree() : 0);
    return MakeGaussianEvent(static_cast<double>(rows) * clip + rounding, noise, steps);
  }
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent step,
                        rows_change
                            ? MakeRowChangeEvent(plan.max_degree(), plan.sampling_rate(), clip, noise, rounding)
                            : MakeRowMixtureEvent(plan.rows_per_node(), plan.sampling_rate(), clip + rounding, noise));
  return MakeRepetitionEvent(steps, step);
}

absl::StatusOr<v1::PrivacyEvent> AggregationEvent(const v1::Plan& plan) {
  const v1::AggregationPlan& aggregation = plan.aggregation();
  const double noise = aggregation.noise_stddev();
  const auto changed = static_cast<double>(plan.max_degree() + 1);
  const double sensitivity =
      DPAR_FAULT(kOwnSumUncharged, std::sqrt(static_cast<double>(plan.max_degree())), AggregationSensitivity(plan));
  return MakeGaussianEvent(
      sensitivity + LatticeError(noise, plan.lattice_bits(), changed * static_cast<double>(plan.hidden_size())) +
          2 * aggregation.row_error() * std::sqrt(changed),
      noise, aggregation.hops());
}

// A sum of vectors of length at most 1, one for each row: `part` is a MeanPlan or a ClassSharesPlan.
template <typename Part>
absl::StatusOr<v1::PrivacyEvent> UnitSumEvent(const v1::Plan& plan, const Part& part, int64_t dimensions) {
  const double noise = part.noise_stddev();
  return MakeGaussianEvent(
      1 + LatticeError(noise, plan.lattice_bits(), static_cast<double>(dimensions)) + 2 * part.summation_error(), noise,
      1);
}

void AddStage(absl::string_view name, const v1::PrivacyEvent& event, v1::CompositionEvent& composition) {
  v1::StageEvent& stage = *composition.add_events()->mutable_stage();
  stage.set_name(std::string(name));
  *stage.mutable_event() = event;
}

v1::PrivacyEvent Sampled(double rate, v1::PrivacyEvent inner) {
  v1::PrivacyEvent event;
  event.mutable_node_sampling()->set_sampling_rate(rate);
  *event.mutable_node_sampling()->mutable_event() = std::move(inner);
  return event;
}

// GAP trains before and after its aggregation.
absl::StatusOr<double> GapEpsilonAfter(const v1::Plan& plan, const PublicSizes& sizes, int64_t steps) {
  DPAR_ASSIGN_OR_RETURN(v1::PrivacyEvent event, PlanEvent(plan, sizes));
  v1::PrivacyEvent& stages = event.has_node_sampling() ? *event.mutable_node_sampling()->mutable_event() : event;
  v1::CompositionEvent& parts = *stages.mutable_composition();
  const int64_t of_head = steps - plan.steps();
  if (of_head <= 0) {
    parts.mutable_events()->RemoveLast();
  } else {
    DPAR_ASSIGN_OR_RETURN(*parts.mutable_events(2)->mutable_stage()->mutable_event(),
                          TrainingEvent(plan, ParameterCount(plan, sizes), std::min(of_head, plan.steps())));
  }
  if (of_head < 0) {
    parts.mutable_events()->RemoveLast();
    DPAR_ASSIGN_OR_RETURN(*parts.mutable_events(0)->mutable_stage()->mutable_event(),
                          TrainingEvent(plan, EncoderParameterCount(plan, sizes), steps));
  }
  return EventEpsilon(event, plan.delta());
}

}  // namespace

int64_t InputCount(const v1::Plan& plan, const PublicSizes& sizes) {
  if (plan.has_aggregation()) {
    return (plan.aggregation().hops() + 1) * plan.hidden_size();
  }
  return plan.has_neighbours() ? 2 * sizes.feature_count : sizes.feature_count;
}

int64_t EncoderParameterCount(const v1::Plan& plan, const PublicSizes& sizes) {
  return plan.has_aggregation() ? (sizes.feature_count + 1 + sizes.class_count) * plan.hidden_size() : 0;
}

int64_t TotalSteps(const v1::Plan& plan) { return (plan.has_aggregation() ? 2 : 1) * plan.steps(); }

bool IsOfItsMethod(const v1::Plan& plan) {
  const MethodTraits* traits = FindMethod(plan.method());
  return traits != nullptr && (traits->structure.has_value() || !plan.has_structure()) &&
         plan.has_max_degree() == (traits->reads_edges && !plan.non_private()) &&
         plan.has_aggregation() == (plan.method() == v1::GAP) && plan.has_neighbours() == (plan.method() == v1::SAGE) &&
         (!traits->reads_edges || !(plan.has_mean() || plan.has_class_shares() || plan.has_evaluation()));
}

double AggregationSensitivity(const v1::Plan& plan) {
  return std::hypot(std::sqrt(static_cast<double>(plan.max_degree())), plan.aggregation().clip()) * (1 + 1e-15);
}

double AggregationRowError(const v1::Plan& plan) {
  // A row is summed neighbour after neighbour, without blocks: one row of D terms, with partial sums of up to D.
  const int64_t terms = plan.max_degree();
  return SummationError(1, terms, static_cast<double>(terms)) + kAggregationClipError * plan.aggregation().clip();
}

int64_t ParameterCount(const v1::Plan& plan, const PublicSizes& sizes) {
  const int64_t inputs = InputCount(plan, sizes) + 1;
  return plan.hidden_size() > 0 ? inputs * plan.hidden_size() + plan.hidden_size() * sizes.class_count
                                : inputs * sizes.class_count;
}

int64_t RowCount(const v1::Plan& plan) {
  return plan.has_structure() && plan.structure().rows() == v1::APPR_ONLY ? plan.structure().appr_nodes()
                                                                          : plan.training_slots();
}

int64_t RowsPerNode(const v1::Plan& plan) {
  return 1 + plan.structure().max_occurrence() + (plan.method() == v1::SAGE ? plan.max_degree() : 0);
}

double SummationError(int64_t rows, int64_t entries, double magnitude) {
  constexpr int64_t kOwnRoundings = 16;  // of a term itself, and of a center's correction
  const int64_t blocks = (rows + kSummationBlock - 1) / kSummationBlock;
  const int64_t additions = std::min(rows, kSummationBlock) * entries + blocks + kOwnRoundings;
  return 0x1p-52 * static_cast<double>(additions) * static_cast<double>(rows) * magnitude;
}

double TrainingSummationError(const v1::Plan& plan) {
  const int64_t entries = plan.has_structure() ? plan.structure().top_k() : 1;
  return SummationError(RowCount(plan), entries, kMaxCancellation * plan.gradient_clip());
}

double UnitSummationError(const v1::Plan& plan) { return SummationError(plan.training_slots(), 1, 1); }

PrivateRowsOptions StructureOptions(const v1::Plan& plan) {
  const v1::StructurePlan& structure = plan.structure();
  PrivateRowsOptions options;
  options.solver.alpha = structure.alpha();
  options.solver.rho = structure.rho();
  options.solver.gamma = structure.gamma();
  options.mechanism = FindMethod(plan.method())->structure.value();
  options.rows = structure.appr_nodes();
  options.k = structure.top_k();
  options.clip = structure.clip();
  options.noise = structure.noise();
  options.value_noise = structure.value_noise();
  return options;
}

absl::StatusOr<v1::PrivacyEvent> EvaluationEvent(const v1::Plan& plan) {
  const double noise = plan.evaluation().noise_stddev();
  return MakeGaussianEvent(1 + LatticeError(noise, plan.lattice_bits(), 1), noise, 1);
}

absl::StatusOr<v1::PrivacyEvent> PlanEvent(const v1::Plan& plan, const PublicSizes& sizes) {
  if (!IsOfItsMethod(plan)) {
    return InvalidField("plan", "the plan's method has no event");
  }
  v1::PrivacyEvent training;
  v1::CompositionEvent& stages = *training.mutable_composition();
  if (plan.has_mean()) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent mean, UnitSumEvent(plan, plan.mean(), sizes.feature_count));
    AddStage(kMeanStage, mean, stages);
  }
  if (plan.has_structure()) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent structure,
                          PrivateRowsEvent(StructureOptions(plan), plan.training_slots()));
    AddStage(kStructureStage, structure, stages);
  }
  if (plan.has_aggregation()) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent encoder,
                          TrainingEvent(plan, EncoderParameterCount(plan, sizes), plan.steps()));
    AddStage(kEncoderStage, encoder, stages);
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent aggregation, AggregationEvent(plan));
    AddStage(kAggregationStage, aggregation, stages);
  }
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent steps, TrainingEvent(plan, ParameterCount(plan, sizes), plan.steps()));
  AddStage(kTrainingStage, steps, stages);
  if (DPAR_FAULT(kUnchargedShares, false, plan.has_class_shares())) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent shares, UnitSumEvent(plan, plan.class_shares(), sizes.class_count));
    AddStage(kSharesStage, shares, stages);
  }
  const bool sampled = plan.node_sampling_rate() != 1;
  v1::PrivacyEvent event = sampled ? Sampled(plan.node_sampling_rate(), std::move(training)) : std::move(training);
  if (DPAR_FAULT(kUnchargedEvaluation, false, plan.has_evaluation())) {
    if (sampled) {
      v1::PrivacyEvent whole;
      *whole.mutable_composition()->add_events() = std::move(event);
      event = std::move(whole);
    }
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent evaluation, EvaluationEvent(plan));
    AddStage(kEvaluationStage, evaluation, *event.mutable_composition());
  }
  DPAR_RETURN_IF_ERROR(ValidateEvent(event));
  return event;
}

absl::StatusOr<double> EpsilonAfter(const v1::Plan& plan, const PublicSizes& sizes, int64_t steps) {
  if (plan.has_aggregation() && !plan.non_private()) {
    return steps <= 0 ? absl::StatusOr<double>(0.0) : GapEpsilonAfter(plan, sizes, steps);
  }
  if (plan.non_private() || (steps <= 0 && !plan.has_mean() && !plan.has_structure())) {
    return 0.0;
  }
  v1::Plan so_far = plan;
  so_far.clear_evaluation();
  if (steps < plan.steps()) {
    so_far.clear_class_shares();
  }
  so_far.set_steps(std::clamp<int64_t>(steps, 1, plan.steps()));
  DPAR_ASSIGN_OR_RETURN(v1::PrivacyEvent event, PlanEvent(so_far, sizes));
  if (steps <= 0) {
    v1::PrivacyEvent& stages = event.has_node_sampling() ? *event.mutable_node_sampling()->mutable_event() : event;
    stages.mutable_composition()->mutable_events()->RemoveLast();
  }
  return EventEpsilon(event, plan.delta());
}

std::vector<Stage> StagesOf(const v1::PrivacyEvent& event) {
  std::vector<Stage> stages;
  if (event.has_stage()) {
    stages.push_back({event.stage().name(), event.stage().event()});
  }
  if (event.has_composition()) {
    for (const v1::PrivacyEvent& part : event.composition().events()) {
      for (Stage& stage : StagesOf(part)) {
        stages.push_back(std::move(stage));
      }
    }
  }
  if (event.has_node_sampling()) {
    for (Stage& stage : StagesOf(event.node_sampling().event())) {
      stages.push_back({stage.name, Sampled(event.node_sampling().sampling_rate(), std::move(stage.event))});
    }
  }
  return stages;
}

absl::StatusOr<std::vector<v1::StagePrice>> StageUnits(const v1::PrivacyEvent& event, int64_t order) {
  std::vector<v1::StagePrice> costs;
  for (const Stage& stage : StagesOf(event)) {
    DPAR_ASSIGN_OR_RETURN(const int64_t units, EventUnits(stage.event, order));
    v1::StagePrice& cost = costs.emplace_back();
    cost.set_stage(stage.name);
    cost.set_units(units);
  }
  return costs;
}

}  // namespace dpar
