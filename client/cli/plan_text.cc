#include "client/cli/plan_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "core/plan/plan_event.h"

namespace dpar {
namespace {

std::string StepsText(const v1::Plan& plan) {
  const std::string steps =
      absl::StrCat(FormatCount(plan.steps()), plan.has_aggregation() ? " for the encoder and as many after" : "");
  if (plan.sampling_rate() == 1) {
    return absl::StrCat(steps, ", each on all ", FormatCount(RowCount(plan)), " rows");
  }
  return absl::StrCat(steps, ", each on about ", FormatNumber(plan.batch_size()), " rows, a row with probability ",
                      FormatNumber(plan.sampling_rate()));
}

std::string StructureText(const v1::Plan& plan) {
  const v1::StructurePlan& structure = plan.structure();
  std::string text = absl::StrCat("M ", FormatCount(structure.appr_nodes()), ", K ", structure.top_k());
  if (plan.non_private()) {
    return text;
  }
  absl::StrAppend(&text, ", clip ", FormatNumber(structure.clip()), ", noise ",
                  plan.method() == v1::DPAR_GM ? "Gaussian " : "Gumbel ", FormatNumber(structure.noise()));
  if (structure.value_noise() > 0) {
    absl::StrAppend(&text, ", Laplace ", FormatNumber(structure.value_noise()));
  }
  return text;
}

std::string AggregationText(const v1::Plan& plan) {
  const v1::AggregationPlan& aggregation = plan.aggregation();
  std::string text = absl::StrCat(aggregation.hops(), aggregation.hops() == 1 ? " hop" : " hops");
  if (!plan.non_private()) {
    absl::StrAppend(&text, ", clip ", FormatNumber(aggregation.clip()), ", noise ",
                    FormatNumber(aggregation.noise_stddev()));
  }
  return text;
}

std::string EvaluationPlanText(const v1::Plan& plan) {
  const v1::EvaluationPlan& evaluation = plan.evaluation();
  std::string text = absl::StrCat("on ", FormatCount(evaluation.held_out_slots()), " held-out slots");
  if (evaluation.noise_stddev() > 0) {
    absl::StrAppend(&text, ", noise ", FormatNumber(evaluation.noise_stddev()), " on the number right");
  }
  return text;
}

}  // namespace

std::string PlanText(const v1::Plan& plan) {
  const std::string text = absl::StrCat(MethodLabel(plan.method()), ", ", plan.steps(), " steps, ");
  if (plan.non_private()) {
    return absl::StrCat(text, "no noise, no privacy");
  }
  return absl::StrCat(text, "noise multiplier ", FormatNumber(plan.noise_multiplier()), ", epsilon ",
                      FormatNumberUp(plan.epsilon()), ", delta ", FormatNumberUp(plan.delta()));
}

std::vector<std::pair<std::string, std::string>> PlanLines(const v1::Plan& plan) {
  std::vector<std::pair<std::string, std::string>> lines = {{"method", MethodLabel(plan.method())},
                                                            {"steps", StepsText(plan)}};
  if (plan.node_sampling_rate() < 1) {
    lines.emplace_back("node sampling", absl::StrCat("rate ", FormatNumber(plan.node_sampling_rate())));
  }
  if (plan.has_structure()) {
    lines.emplace_back("structure", StructureText(plan));
  }
  if (plan.has_aggregation()) {
    lines.emplace_back("aggregation", AggregationText(plan));
  }
  if (plan.has_neighbours()) {
    lines.emplace_back("neighbours", absl::StrCat("up to ", plan.neighbours(), " sampled for a node"));
  }
  if (plan.has_max_degree()) {
    lines.emplace_back("degree promise",
                       absl::StrCat("at most ", FormatCount(plan.max_degree()), " neighbours a node"));
  }
  if (plan.has_mean()) {
    lines.emplace_back("mean", plan.non_private()
                                   ? "subtracted from every row"
                                   : absl::StrCat("private, noise ", FormatNumber(plan.mean().noise_stddev()),
                                                  " on the sum of all rows"));
  }
  if (plan.has_class_shares()) {
    lines.emplace_back("class shares",
                       plan.non_private()
                           ? "released with the model, for shifted graphs"
                           : absl::StrCat("private, noise ", FormatNumber(plan.class_shares().noise_stddev()),
                                          " on each class's sum, for shifted graphs"));
  }
  if (plan.has_evaluation()) {
    lines.emplace_back("evaluation", EvaluationPlanText(plan));
  }
  if (plan.non_private()) {
    lines.emplace_back("guarantee", "none: no noise is drawn");
    return lines;
  }
  lines.emplace_back("noise multiplier", FormatNumber(plan.noise_multiplier()));
  lines.emplace_back("guarantee", absl::StrCat("epsilon ", FormatNumberUp(plan.epsilon()), " at delta ",
                                               FormatNumberUp(plan.delta())));
  if (plan.has_published_epsilon()) {
    lines.emplace_back("published", absl::StrCat("epsilon ", FormatNumber(plan.published_epsilon()),
                                                 ": the paper's claim, not a bound"));
  }
  return lines;
}

std::string EvaluationText(const v1::Plan& plan, const v1::Evaluation& evaluation) {
  const bool noisy = plan.evaluation().noise_stddev() > 0;
  return absl::StrCat(
      absl::StrFormat("%.2f (95%%: %.2f to %.2f) on ", evaluation.accuracy(), evaluation.low(), evaluation.high()),
      FormatCount(evaluation.held_out_slots()), " held-out nodes", noisy ? ", noisy" : "",
      plan.price_units() > 0 ? ", charged" : "");
}

}  // namespace dpar
