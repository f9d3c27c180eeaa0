#include "core/plan/noise.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/plan/method.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/privacy/calibrate.h"
#include "core/privacy/event.h"
#include "core/privacy/published.h"
#include "core/privacy/published_rivals.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// The least noise that every event takes, lattice included; used where sampling alone meets the target.
constexpr double kLeastNoise = 2 * kMinNoiseMultiplier;
constexpr double kMostPublishedNoise = 1e6;

// Where event_of(x) fails, or nobody waits for the result, the accountant refuses the empty event in its place.
absl::StatusOr<double> LeastNoise(const std::function<absl::StatusOr<v1::PrivacyEvent>(double)>& event_of,
                                  double epsilon, double delta, const KeepGoing& keep_going) {
  const auto event_at = [&](double x) {
    return keep_going() ? event_of(std::max(x, kLeastNoise)).value_or(v1::PrivacyEvent()) : v1::PrivacyEvent();
  };
  const absl::StatusOr<double> noise = CalibrateNoise(event_at, epsilon, delta);
  if (!noise.ok() && !keep_going()) {
    return absl::CancelledError("nobody waits for the plan any more");
  }
  DPAR_RETURN_IF_ERROR(noise.status());
  return std::max(*noise, kLeastNoise);
}

void SetStructureNoise(double x, v1::StructurePlan& structure, bool has_values) {
  structure.set_noise(x * structure.clip());
  structure.set_value_noise(has_values ? x * structure.clip() : 0);
}

bool HasValues(const v1::Plan& plan) { return FindMethod(plan.method())->structure == ApprMechanism::kEm1; }

DparPipeline PipelineOf(const v1::Plan& plan) {
  DparPipeline pipeline;
  pipeline.method = ApprMethod::kNone;
  if (plan.has_structure()) {
    const v1::StructurePlan& structure = plan.structure();
    switch (FindMethod(plan.method())->structure.value()) {
      case ApprMechanism::kEm0:
        pipeline.method = ApprMethod::kEm0;
        break;
      case ApprMechanism::kEm1:
        pipeline.method = ApprMethod::kEm1;
        break;
      case ApprMechanism::kGm:
        pipeline.method = ApprMethod::kGm;
        break;
    }
    pipeline.seeds = structure.appr_nodes();
    pipeline.top_k = structure.top_k();
    pipeline.appr_noise = structure.noise() / structure.clip();
    pipeline.value_noise = structure.value_noise() / structure.clip();
    pipeline.max_occurrence = structure.max_occurrence();
  }
  pipeline.sampling_rate = plan.sampling_rate();
  pipeline.noise_multiplier = plan.noise_multiplier();
  pipeline.steps = plan.steps();
  pipeline.node_sampling_rate = plan.node_sampling_rate();
  return pipeline;
}

// One noise multiplier for all stages: GAP's sums over neighbours have x times their sensitivity, as in its paper.
void SetNoise(double x, v1::Plan& plan) {
  plan.set_noise_multiplier(x);
  if (plan.has_aggregation()) {
    plan.mutable_aggregation()->set_noise_stddev(x * AggregationSensitivity(plan));
  }
}

// With the paper's own sensitivity.
void SetPublishedNoise(double x, v1::Plan& plan) {
  plan.set_noise_multiplier(x);
  if (plan.has_aggregation()) {
    plan.mutable_aggregation()->set_noise_stddev(x * std::sqrt(static_cast<double>(plan.max_degree())));
  }
}

absl::StatusOr<double> PublishedRivalEpsilon(const v1::Plan& plan) {
  if (plan.node_sampling_rate() != 1) {
    return InvalidField("accountant",
                        absl::StrCat("accountant AS_PUBLISHED: the paper of method ", FindMethod(plan.method())->name,
                                     " has no theorem for a sample of the nodes; leave node_sampling_rate unset"));
  }
  if (plan.method() == v1::SAGE) {
    SagePipeline pipeline;
    pipeline.max_degree = plan.max_degree();
    pipeline.slots = plan.training_slots();
    pipeline.batch_size = std::clamp<int64_t>(std::llround(plan.batch_size()), 1, plan.training_slots());
    pipeline.noise_multiplier = plan.noise_multiplier();
    pipeline.steps = plan.steps();
    return PublishedEpsilon(pipeline, plan.delta());
  }
  GapPipeline pipeline;
  pipeline.max_degree = plan.max_degree();
  pipeline.hops = plan.aggregation().hops();
  pipeline.aggregation_noise = plan.aggregation().noise_stddev();
  pipeline.sampling_rate = plan.sampling_rate();
  pipeline.noise_multiplier = plan.noise_multiplier();
  pipeline.steps = plan.steps();
  return PublishedEpsilon(pipeline, plan.delta());
}

// The least x >= kLeastNoise at which `cost`, which falls with x, is at most `target`, to 1e-9.
absl::StatusOr<double> LeastPublishedNoise(const std::function<absl::StatusOr<double>(double)>& cost, double target) {
  double low = std::log(kLeastNoise);
  double high = std::log(kMostPublishedNoise);
  DPAR_ASSIGN_OR_RETURN(const double least_cost, cost(kMostPublishedNoise));
  if (!(least_cost <= target)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_UNREACHABLE,
                     absl::StrCat("no noise gives the published epsilon ", target, "; ask for a larger one"));
  }
  while (high - low > 1e-9) {
    const double middle = low + (high - low) / 2;
    DPAR_ASSIGN_OR_RETURN(const double at, cost(std::exp(middle)));
    (at <= target ? high : low) = middle;
  }
  return std::exp(high);
}

absl::Status PriceAsPublished(const PublicSizes& sizes, v1::Plan& plan) {
  DPAR_ASSIGN_OR_RETURN(*plan.mutable_event(), PlanEvent(plan, sizes));
  DPAR_ASSIGN_OR_RETURN(const double sound, EventEpsilon(plan.event(), plan.delta()));
  plan.set_epsilon(sound);
  return absl::OkStatus();
}

absl::Status CalibrateRivalAsPublished(double epsilon, const PublicSizes& sizes, v1::Plan& plan) {
  v1::Plan candidate = plan;
  const auto cost = [&](double x) {
    SetPublishedNoise(x, candidate);
    return PublishedRivalEpsilon(candidate);
  };
  DPAR_ASSIGN_OR_RETURN(const double noise, LeastPublishedNoise(cost, epsilon));
  SetPublishedNoise(noise, plan);
  return PriceAsPublished(sizes, plan);
}

// mu = (1 + sigma 2^-bits sqrt(dimensions) + 2E) / sigma. `part` is a MeanPlan or a ClassSharesPlan.
template <typename Part>
absl::Status CalibrateUnitSum(double mu, int64_t dimensions, const v1::Plan& plan, Part& part, absl::string_view name,
                              absl::string_view option) {
  const double lattice = std::ldexp(std::sqrt(static_cast<double>(dimensions)), -plan.lattice_bits());
  if (!(mu > lattice)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_UNREACHABLE,
                     absl::StrCat("no noise on the ", name, " meets its share; ask for a larger epsilon or set ",
                                  option, " to false"));
  }
  part.set_noise_stddev((1 + 2 * part.summation_error()) / (mu - lattice));
  return absl::OkStatus();
}

}  // namespace

absl::Status CalibrateEvaluation(double epsilon, v1::Plan& plan, const KeepGoing& keep_going) {
  v1::Plan candidate = plan;
  const auto event_of = [&](double x) {
    candidate.mutable_evaluation()->set_noise_stddev(x);
    return EvaluationEvent(candidate);
  };
  DPAR_ASSIGN_OR_RETURN(const double noise, LeastNoise(event_of, epsilon, plan.delta(), keep_going));
  plan.mutable_evaluation()->set_noise_stddev(noise);
  return absl::OkStatus();
}

absl::Status CalibrateStructure(double epsilon, v1::Plan& plan, const KeepGoing& keep_going) {
  v1::Plan candidate = plan;
  const auto event_of = [&](double x) -> absl::StatusOr<v1::PrivacyEvent> {
    SetStructureNoise(x, *candidate.mutable_structure(), HasValues(plan));
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent rows,
                          PrivateRowsEvent(StructureOptions(candidate), plan.training_slots()));
    return MakeNodeSamplingEvent(plan.node_sampling_rate(), rows);
  };
  DPAR_ASSIGN_OR_RETURN(const double noise, LeastNoise(event_of, epsilon, plan.delta(), keep_going));
  SetStructureNoise(noise, *plan.mutable_structure(), HasValues(plan));
  return absl::OkStatus();
}

absl::Status CalibrateMean(double mu, const PublicSizes& sizes, v1::Plan& plan) {
  return CalibrateUnitSum(mu, sizes.feature_count, plan, *plan.mutable_mean(), "private mean", "center");
}

absl::Status CalibrateShares(double mu, const PublicSizes& sizes, v1::Plan& plan) {
  return CalibrateUnitSum(mu, sizes.class_count, plan, *plan.mutable_class_shares(), "class shares", "shift");
}

absl::Status CalibrateTraining(const PublicSizes& sizes, v1::Plan& plan, const KeepGoing& keep_going) {
  v1::Plan candidate = plan;
  double epsilon = plan.epsilon();
  double delta = plan.delta();
  // The accountant takes seconds for an evaluation beside a sample; adding epsilons and deltas is sound, if looser.
  if (plan.has_evaluation() && plan.node_sampling_rate() != 1) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent evaluation, EvaluationEvent(plan));
    delta = plan.delta() / 2;
    DPAR_ASSIGN_OR_RETURN(const double evaluation_epsilon, EventEpsilon(evaluation, delta));
    epsilon -= evaluation_epsilon;
    if (!(epsilon > 0)) {
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_UNREACHABLE,
                       "the evaluation leaves nothing for training; give it a smaller share");
    }
    candidate.clear_evaluation();
  }
  const auto event_of = [&](double x) {
    SetNoise(x, candidate);
    return PlanEvent(candidate, sizes);
  };
  DPAR_RETURN_IF_ERROR(event_of(1).status());
  DPAR_ASSIGN_OR_RETURN(const double noise, LeastNoise(event_of, epsilon, delta, keep_going));
  SetNoise(noise, plan);
  DPAR_ASSIGN_OR_RETURN(*plan.mutable_event(), PlanEvent(plan, sizes));
  if (plan.has_evaluation() && plan.node_sampling_rate() != 1) {
    // The accountant, which has a floor of about 1e-13 of delta here, must confirm it.
    DPAR_ASSIGN_OR_RETURN(const double together, EventEpsilon(plan.event(), plan.delta()));
    if (together > plan.epsilon()) {
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_UNREACHABLE,
                       absl::StrCat("delta ", plan.delta(),
                                    " is too small for an evaluation beside a sample of nodes; ask for a larger delta, "
                                    "no evaluation or no sampling"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> PublishedEpsilon(const v1::Plan& plan) {
  if (plan.has_max_degree()) {
    return PublishedRivalEpsilon(plan);
  }
  if (plan.has_mean() || plan.has_class_shares() || plan.has_evaluation()) {
    return InvalidField("accountant",
                        "accountant AS_PUBLISHED: the paper has no theorem for a private mean, class shares or a "
                        "charged evaluation; set options.center and options.shift to false and ask for no evaluation");
  }
  DPAR_ASSIGN_OR_RETURN(const PublishedClaim cost, PublishedEpsilon(PipelineOf(plan), plan.delta()));
  return cost.epsilon;
}

absl::Status CalibrateAsPublished(double epsilon, const PublicSizes& sizes, v1::Plan& plan) {
  if (plan.has_max_degree()) {
    return CalibrateRivalAsPublished(epsilon, sizes, plan);
  }
  const double share = plan.has_structure() ? plan.structure().share() : 0;
  DparPipeline pipeline = PipelineOf(plan);
  pipeline.noise_multiplier = 1;
  const double rate = plan.node_sampling_rate();
  if (plan.has_structure()) {
    const auto structure_cost = [&](double x) -> absl::StatusOr<double> {
      pipeline.appr_noise = x;
      pipeline.value_noise = HasValues(plan) ? x : 0;
      DPAR_ASSIGN_OR_RETURN(const PublishedClaim cost, PublishedEpsilon(pipeline, plan.delta()));
      return rate * cost.appr_epsilon;
    };
    DPAR_ASSIGN_OR_RETURN(const double noise, LeastPublishedNoise(structure_cost, share * epsilon));
    SetStructureNoise(noise, *plan.mutable_structure(), HasValues(plan));
    pipeline = PipelineOf(plan);
  }
  const auto training_cost = [&](double x) -> absl::StatusOr<double> {
    pipeline.noise_multiplier = x;
    DPAR_ASSIGN_OR_RETURN(const PublishedClaim cost, PublishedEpsilon(pipeline, plan.delta()));
    return rate * cost.sgd_epsilon;
  };
  DPAR_ASSIGN_OR_RETURN(const double noise, LeastPublishedNoise(training_cost, (1 - share) * epsilon));
  plan.set_noise_multiplier(noise);
  return PriceAsPublished(sizes, plan);
}

}  // namespace dpar
