// DP-APPR rows, and whole trainings.
#include <algorithm>
#include <memory>
#include <utility>

#include "core/infer/row_blocks.h"
#include "core/plan/plan_event.h"
#include "core/train/aggregation.h"
#include "core/train/structure.h"
#include "core/train/train.h"
#include "tests/audit/case.h"
#include "tests/audit/inputs.h"

namespace dpar::audit {
namespace {

constexpr int64_t kFewRuns = 30'000;
constexpr int64_t kTrainingRuns = 10'000;
constexpr int64_t kSampledRuns = 80'000;

struct RowInput {
  std::string name;
  int64_t nodes = 0;
  std::vector<std::pair<int32_t, int32_t>> edges;  // node 0 is made null
  double alpha = 0.25;
  double rho = 1e-4;
  double clip = 1;
  int64_t k = 1;
};

// Every slot is a seed, and nothing is cut off the columns: all that was drawn is seen. A release holds for every seed
// and slot the value that is shown, or 0, and for EM1 also whether there is one.
Case RowCase(v1::Method method, const std::string& name, const RowInput& input) {
  const auto graphs = std::make_shared<Neighbours>(
      Remove(GraphOf(std::vector<Node>(static_cast<size_t>(input.nodes)), input.edges, 1, 2), 0));
  v1::TrainingSpec spec = SpecOf(method, 2);
  v1::TrainingOptions& options = *spec.mutable_options();
  options.set_structure_share(0.5);
  options.set_appr_nodes(input.nodes);
  options.set_top_k(input.k);
  options.set_alpha(input.alpha);
  options.set_rho(input.rho);
  options.set_column_clip(1e12);
  options.set_max_occurrence(input.nodes);
  if (method == v1::DPAR_GM) {
    options.set_row_clip(input.clip);
  } else {
    options.set_entry_clip(input.clip);
  }
  const auto plan = std::make_shared<v1::Plan>(PlanFor(spec, graphs->with.sizes));
  const auto n = static_cast<size_t>(input.nodes);
  const bool two_numbers = method == v1::DPAR_EM1;
  Case one = {name, input.name, ClaimOf(*plan, kStructureStage), false, kFewRuns, n * n * (two_numbers ? 2 : 1), {}};
  one.make = [graphs, plan, n, two_numbers](bool with, double fault) {
    return [graphs, drawn = WithNoise(*plan, fault), n, two_numbers, &graph = graphs->of(with)](RandomSource& random,
                                                                                                std::span<double> out) {
      const ApprRows rows = Must(DrawStructure(drawn, graph, 1, random, Always));
      std::fill(out.begin(), out.end(), 0.0);
      for (size_t row = 0; row < rows.seeds.size(); ++row) {
        for (auto at = static_cast<size_t>(rows.offsets[row]); at < static_cast<size_t>(rows.offsets[row + 1]); ++at) {
          const size_t place = static_cast<size_t>(rows.seeds[row]) * n + static_cast<size_t>(rows.columns[at]);
          out[place] = rows.values[at];
          if (two_numbers) {
            out[n * n + place] = 1;
          }
        }
      }
    };
  };
  return one;
}

// One hop of GAP over rows that all are the same: the worst there is. The middle of a star with as many leaves as
// promised is taken away, so that all their sums fall from 1 to 0, and its own from R to 0.
Case HopCase(const std::string& input, int32_t leaves, double clip) {
  const auto graphs = std::make_shared<Neighbours>(
      Remove(GraphOf(std::vector<Node>(static_cast<size_t>(leaves) + 1), StarEdges(leaves), 1, 2), 0));
  v1::TrainingSpec spec = SpecOf(v1::GAP, 2);
  spec.mutable_options()->set_hidden_size(1);
  spec.mutable_options()->set_hops(1);
  spec.mutable_options()->set_aggregation_clip(clip);
  const auto plan = std::make_shared<v1::Plan>(PlanFor(spec, graphs->with.sizes, leaves));
  const auto rows = std::make_shared<NodeMatrix>(NodeMatrix::Ones(leaves + 1, 1));
  Case one = {"GAP hop", input, ClaimOf(*plan, kAggregationStage), true, kFewRuns, static_cast<size_t>(leaves) + 1, {}};
  one.make = [graphs, plan, rows](bool with, double fault) {
    return [graphs, drawn = WithNoise(*plan, fault), rows, &graph = graphs->of(with)](RandomSource& random,
                                                                                      std::span<double> out) {
      const std::vector<double> sums = Must(AggregateHop(drawn, graph.edges(), *rows, 1, random, Always));
      std::copy(sums.begin(), sums.end(), out.begin());
    };
  };
  return one;
}

// The model that the service would return: its weights and its center. The degree promise, where the method needs one,
// is the graph's own largest degree.
Case TrainingCase(const std::string& name, const std::string& input, const Graph& graph, const v1::TrainingSpec& spec) {
  const auto graphs = std::make_shared<Neighbours>(Remove(graph, 0));
  const auto plan = std::make_shared<v1::Plan>(PlanFor(spec, graph.sizes, graph.edges().largest_degree()));
  Case one = {name, input, ClaimOf(*plan), false, kTrainingRuns, 0, {}};
  const int64_t center = plan->has_mean() ? graph.sizes.feature_count : 0;
  const int64_t encoder = plan->has_aggregation() ? (graph.sizes.feature_count + 1) * plan->hidden_size() : 0;
  one.width = static_cast<size_t>(ParameterCount(*plan, graph.sizes) + center + encoder);
  one.make = [graphs, plan](bool with, double fault) {
    const bool sampled = plan->node_sampling_rate() < 1;
    v1::Plan run = WithNoise(*plan, sampled ? 1 : fault);
    run.set_node_sampling_rate(std::min(1.0, run.node_sampling_rate() / (sampled ? fault : 1)));
    return [graphs, run, &one_graph = graphs->of(with)](RandomSource& random, std::span<double> out) {
      const TrainingCallbacks silent = {Always, [](TrainingStage, int64_t, int64_t) {}};
      const Model model = Must(Train(run, one_graph, {}, random, silent)).model;
      auto behind = std::copy(model.weights.begin(), model.weights.end(), out.begin());
      behind = std::copy(model.output_weights.begin(), model.output_weights.end(), behind);
      behind = std::copy(model.encoder_weights.begin(), model.encoder_weights.end(), behind);
      std::copy(model.center.begin(), model.center.end(), behind);
    };
  };
  return one;
}

// A star whose middle has a label against those of the leaves, or the same.
Graph Star(int32_t leaves, const Node& middle) {
  std::vector<Node> nodes(static_cast<size_t>(leaves) + 1, Node{1, 0, 1});
  nodes[0] = middle;
  return GraphOf(nodes, StarEdges(leaves), 1, 2);
}
constexpr Node kAgainst = {0, 0, 1};
constexpr Node kAlike = {1, 0, 1};

v1::TrainingSpec TrainingSpecOf(v1::Method method, int64_t steps) {
  v1::TrainingSpec spec = SpecOf(method, 1);
  spec.mutable_options()->set_steps(steps);
  spec.mutable_options()->set_gradient_clip(1e-3);
  return spec;
}

}  // namespace

std::vector<Case> RowCases() {
  const std::vector<std::pair<int32_t, int32_t>> pair = {{0, 1}};
  // Of all graphs of five nodes, one in which removing a node takes entries from 0 to the clip and back in most rows:
  // a selection then costs nearly what its range allows.
  const std::vector<std::pair<int32_t, int32_t>> worst = {{0, 1}, {0, 2}, {1, 2}, {1, 4}, {2, 3}};
  const RowInput selections = {.name = "hub", .nodes = 5, .edges = worst, .alpha = 0.05, .rho = 0.1, .clip = 0.0016};
  const RowInput star = {.name = "hub", .nodes = 5, .edges = StarEdges(4), .clip = 0.1, .k = 5};
  RowInput listed = {.name = "listed", .nodes = 5, .edges = StarEdges(4), .k = 2};
  const RowInput lone = {.name = "lone", .nodes = 2, .edges = pair, .alpha = 0.25, .clip = 0.3, .k = 2};
  RowInput lone_selections = lone;
  lone_selections.k = 1;
  lone_selections.rho = 0.4;
  lone_selections.clip = 0.24;
  std::vector<Case> cases = {RowCase(v1::DPAR_GM, "GM rows", star), RowCase(v1::DPAR_GM, "GM rows", lone),
                             RowCase(v1::DPAR_EM0, "EM0 rows", selections),
                             RowCase(v1::DPAR_EM0, "EM0 rows", lone_selections)};
  listed.clip = 0.1;
  cases.push_back(RowCase(v1::DPAR_EM0, "EM0 rows", listed));
  cases.push_back(RowCase(v1::DPAR_EM1, "EM1 rows", selections));
  cases.push_back(RowCase(v1::DPAR_EM1, "EM1 rows", listed));
  return cases;
}

std::vector<Case> HopCases() { return {HopCase("hub", 8, 8), HopCase("hub, small R", 8, 1)}; }

std::vector<Case> TrainingCases() {
  std::vector<Case> cases;
  cases.push_back(TrainingCase("five steps", "outlier", Star(7, kAgainst), TrainingSpecOf(v1::FEATURES, 5)));
  cases.back().tight = true;
  cases.back().runs = kFewRuns;
  v1::TrainingSpec center = TrainingSpecOf(v1::FEATURES, 5);
  center.mutable_options()->set_center(true);
  center.mutable_options()->set_momentum(0.9);
  cases.push_back(TrainingCase("mean and five steps", "outlier", Star(7, {0, 0, 1e30F}), center));
  for (const auto& [method, name] :
       {std::pair(v1::DPAR_GM, "dpar-gm"), std::pair(v1::DPAR_EM0, "dpar-em0"), std::pair(v1::DPAR_EM1, "dpar-em1")}) {
    v1::TrainingSpec spec = TrainingSpecOf(method, 3);
    spec.mutable_options()->set_appr_nodes(5);
    spec.mutable_options()->set_max_occurrence(2);
    cases.push_back(TrainingCase(std::string(name) + ", three steps", "hub", Star(5, kAlike), spec));
    if (method == v1::DPAR_GM) {
      spec.mutable_options()->set_node_sampling_rate(0.5);
      cases.push_back(TrainingCase("node sampling, dpar-gm", "hub", Star(5, kAlike), spec));
    }
  }
  for (const auto& [method, name] : {std::pair(v1::GAP, "gap"), std::pair(v1::SAGE, "sage")}) {
    v1::TrainingSpec spec = TrainingSpecOf(method, 2);
    spec.mutable_options()->set_hidden_size(2);
    cases.push_back(TrainingCase(std::string(name) + ", two steps", "hub", Star(5, kAlike), spec));
  }
  // Nothing but the node is there, and epsilon is where its being kept more often shows most.
  v1::TrainingSpec sampled = TrainingSpecOf(v1::FEATURES, 1);
  sampled.set_epsilon(0.5);
  sampled.mutable_options()->set_node_sampling_rate(0.5);
  cases.push_back(TrainingCase("node sampling, one step", "lone", Remove(Star(1, kAgainst), 1).without, sampled));
  cases.back().tight = true;
  cases.back().runs = kSampledRuns;
  sampled.set_epsilon(1);
  sampled.mutable_options()->set_center(true);
  sampled.mutable_options()->set_batch_size(1);
  cases.push_back(TrainingCase("node sampling, mean and batch", "outlier", Star(3, kAgainst), sampled));
  return cases;
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (std::vector<Case>& some :
       std::vector<std::vector<Case>>{MeanCases(), StepCases(), ListedCases(), RowCases(), ExtremalRowCases(),
                                      HopCases(), SageCases(), TrainingCases(), SharesCases(), EvaluationCases()}) {
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace dpar::audit
