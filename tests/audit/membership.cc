#include "tests/audit/membership.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"
#include "core/graph/generate.h"
#include "core/graph/split.h"
#include "core/infer/logits.h"
#include "core/plan/method.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/train.h"
#include "tests/audit/inputs.h"

namespace dpar::audit {
namespace {

using ::dpar::testing::FixedRandom;

constexpr double kMembershipDelta = 1e-5;

// Few nodes for many columns, so that a model without noise knows its nodes by heart.
Graph MembershipGraph(const MembershipOptions& options) {
  FixedRandom random(options.seed);
  GeneratorOptions generator;
  generator.nodes = options.nodes;
  generator.features = 4 * options.nodes;
  generator.signal = 0.2;
  return Must(GenerateGraph(generator, random));
}

// The log of the probability that the model gives to a node's label, from its own features.
std::vector<double> LogLikelihoods(const Model& model, const Graph& graph, int threads) {
  const NodeMatrix logits = Must(Logits(model, graph.features, threads, Always));
  std::vector<double> scores;
  for (Eigen::Index node = 0; node < logits.rows(); ++node) {
    const Eigen::ArrayXd row = logits.row(node).cast<double>().array();
    const double largest = row.maxCoeff();
    scores.push_back(row(graph.labels[static_cast<size_t>(node)]) - largest - std::log((row - largest).exp().sum()));
  }
  return scores;
}

}  // namespace

double AreaUnderCurve(std::span<const double> members, std::span<const double> others) {
  std::vector<double> sorted(others.begin(), others.end());
  std::sort(sorted.begin(), sorted.end());
  double pairs = 0;
  for (const double score : members) {
    const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), score);
    pairs += static_cast<double>(low - sorted.begin()) + static_cast<double>(high - low) / 2;
  }
  return pairs / (static_cast<double>(members.size()) * static_cast<double>(others.size()));
}

MembershipRisk AttackMembers(v1::Method method, double epsilon, const MembershipOptions& options) {
  const Graph graph = MembershipGraph(options);
  v1::TrainingSpec spec;
  spec.set_method(method);
  if (epsilon > 0) {
    spec.set_epsilon(epsilon);
    spec.set_delta(kMembershipDelta);
  } else {
    spec.set_non_private(true);
  }
  std::vector<double> areas;
  for (int64_t split = 0; split < options.splits; ++split) {
    FixedRandom random(options.seed * 1000 + static_cast<uint64_t>(split));
    const SlotSplit slots = Must(SplitSlots(graph.sizes.node_count, 0.5, random));
    const Graph members = InducedSubgraph(graph, slots.train);
    const Graph others = InducedSubgraph(graph, slots.test);
    const TrainingCallbacks silent = {Always, [](TrainingStage, int64_t, int64_t) {}};
    const Model model =
        Must(Train(PlanFor(spec, members.sizes), members, {"cpu", options.threads}, random, silent)).model;
    areas.push_back(AreaUnderCurve(LogLikelihoods(model, members, options.threads),
                                   LogLikelihoods(model, others, options.threads)));
  }
  MembershipRisk risk = {FindMethod(method)->name, epsilon};
  const auto count = static_cast<double>(areas.size());
  risk.mean = std::accumulate(areas.begin(), areas.end(), 0.0) / count;
  for (const double area : areas) {
    risk.deviation += (area - risk.mean) * (area - risk.mean);
  }
  risk.deviation = areas.size() < 2 ? 0 : std::sqrt(risk.deviation / (count - 1));
  return risk;
}

std::vector<MembershipRisk> AttackAllMembers(const MembershipOptions& options) {
  std::vector<MembershipRisk> risks;
  for (const v1::Method method : {v1::FEATURES, v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM}) {
    for (const double epsilon : {0.0, 8.0, 4.0, 1.0}) {
      risks.push_back(AttackMembers(method, epsilon, options));
    }
  }
  return risks;
}

std::string Table(const std::vector<MembershipRisk>& risks) {
  std::string table = absl::StrFormat("%-10s  %8s  %6s  %6s\n", "MEMBERSHIP", "EPSILON", "AUC", "STD");
  for (const MembershipRisk& risk : risks) {
    absl::StrAppendFormat(&table, "%-10s  %8s  %6.3f  %6.3f\n", risk.method,
                          risk.epsilon > 0 ? absl::StrFormat("%g", risk.epsilon) : "no noise", risk.mean,
                          risk.deviation);
  }
  return table;
}

}  // namespace dpar::audit
