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

// g sqrt(D): what rounding to the lattice can add to the distance of two sums.
double LatticeError(double noise_stddev, int lattice_bits, double dimensions) {
  return std::ldexp(noise_stddev, -lattice_bits) * std::sqrt(dimensions);
}

// T sums of clipped gradients.
absl::StatusOr<v1::PrivacyEvent> TrainingEvent(const v1::Plan& plan, const PublicSizes& sizes) {
  const double clip = plan.gradient_clip();
  const double noise = plan.noise_multiplier() * clip;
  const auto dimensions = static_cast<double>(ParameterCount(plan, sizes));
  const double rounding = LatticeError(noise, plan.lattice_bits(), dimensions) + 2 * plan.summation_error();
  if (plan.sampling_rate() == 1) {
    return MakeGaussianEvent(static_cast<double>(plan.rows_per_node()) * clip + rounding, noise, plan.steps());
  }
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent step,
                        MakeRowMixtureEvent(plan.rows_per_node(), plan.sampling_rate(), clip + rounding, noise));
  return MakeRepetitionEvent(plan.steps(), step);
}

absl::StatusOr<v1::PrivacyEvent> MeanEvent(const v1::Plan& plan, const PublicSizes& sizes) {
  const double noise = plan.mean().noise_stddev();
  return MakeGaussianEvent(1 + LatticeError(noise, plan.lattice_bits(), static_cast<double>(sizes.feature_count)) +
                               2 * plan.mean().summation_error(),
                           noise, 1);
}

void AddStage(absl::string_view name, const v1::PrivacyEvent& event, v1::CompositionEvent& composition) {
  v1::StageEvent& stage = *composition.add_events()->mutable_stage();
  stage.set_name(std::string(name));
  *stage.mutable_event() = event;
}

// The same sampling around another event.
v1::PrivacyEvent Sampled(double rate, v1::PrivacyEvent inner) {
  v1::PrivacyEvent event;
  event.mutable_node_sampling()->set_sampling_rate(rate);
  *event.mutable_node_sampling()->mutable_event() = std::move(inner);
  return event;
}

}  // namespace

int64_t ParameterCount(const v1::Plan& plan, const PublicSizes& sizes) {
  const int64_t inputs = sizes.feature_count + 1;
  return plan.hidden_size() > 0 ? inputs * plan.hidden_size() + plan.hidden_size() * sizes.class_count
                                : inputs * sizes.class_count;
}

int64_t RowCount(const v1::Plan& plan) {
  return plan.has_structure() && plan.structure().rows() == v1::APPR_ONLY ? plan.structure().appr_nodes()
                                                                          : plan.training_slots();
}

int64_t RowsPerNode(const v1::Plan& plan) { return 1 + plan.structure().max_occurrence(); }

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

double MeanSummationError(const v1::Plan& plan) { return SummationError(plan.training_slots(), 1, 1); }

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
  const MethodTraits* traits = FindMethod(plan.method());
  if (traits == nullptr || (plan.has_structure() && !traits->structure.has_value())) {
    return InvalidField("plan", "the plan's method has no event");
  }
  v1::PrivacyEvent training;
  v1::CompositionEvent& stages = *training.mutable_composition();
  if (plan.has_mean()) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent mean, MeanEvent(plan, sizes));
    AddStage(kMeanStage, mean, stages);
  }
  if (plan.has_structure()) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent structure,
                          PrivateRowsEvent(StructureOptions(plan), plan.training_slots()));
    AddStage(kStructureStage, structure, stages);
  }
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent steps, TrainingEvent(plan, sizes));
  AddStage(kTrainingStage, steps, stages);
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
  if (plan.non_private() || (steps <= 0 && !plan.has_mean() && !plan.has_structure())) {
    return 0.0;
  }
  v1::Plan so_far = plan;
  so_far.clear_evaluation();
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

absl::StatusOr<std::vector<v1::StageCost>> StageUnits(const v1::PrivacyEvent& event, int64_t order) {
  std::vector<v1::StageCost> costs;
  for (const Stage& stage : StagesOf(event)) {
    DPAR_ASSIGN_OR_RETURN(const int64_t units, EventUnits(stage.event, order));
    v1::StageCost& cost = costs.emplace_back();
    cost.set_stage(stage.name);
    cost.set_units(units);
  }
  return costs;
}

}  // namespace dpar
