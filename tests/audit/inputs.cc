#include "tests/audit/inputs.h"

#include <algorithm>

#include "core/plan/plan.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/train/testing/random_rows.h"
#include "tests/audit/case.h"

namespace dpar::audit {

Graph GraphOf(const std::vector<Node>& nodes, const std::vector<std::pair<int32_t, int32_t>>& edges, int64_t columns,
              int64_t classes) {
  Graph graph;
  graph.sizes = {static_cast<int64_t>(nodes.size()), columns, classes};
  std::vector<std::vector<int32_t>> neighbours(nodes.size());
  for (const auto& [a, b] : edges) {
    neighbours[static_cast<size_t>(a)].push_back(b);
    neighbours[static_cast<size_t>(b)].push_back(a);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::sort(neighbours[i].begin(), neighbours[i].end());
    graph.neighbours.insert(graph.neighbours.end(), neighbours[i].begin(), neighbours[i].end());
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
    graph.features.columns.push_back(nodes[i].column);
    graph.features.values.push_back(nodes[i].value);
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
    graph.labels.push_back(nodes[i].label);
  }
  return graph;
}

std::vector<std::pair<int32_t, int32_t>> StarEdges(int32_t leaves) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t leaf = 1; leaf <= leaves; ++leaf) {
    edges.emplace_back(0, leaf);
  }
  return edges;
}

Neighbours Remove(const Graph& graph, int64_t node) { return {graph, testing::WithNull(graph, node)}; }

v1::TrainingSpec SpecOf(v1::Method method, double epsilon) {
  v1::TrainingSpec spec;
  spec.set_method(method);
  spec.set_epsilon(epsilon);
  spec.set_delta(kDelta);
  v1::TrainingOptions& options = *spec.mutable_options();
  options.set_steps(1);
  options.set_learning_rate(1);
  options.set_optimizer(v1::SGD);
  options.set_momentum(0);
  if (method != v1::GAP && method != v1::SAGE) {
    options.set_center(false);
    options.set_shift(false);
  }
  return spec;
}

v1::Plan PlanFor(const v1::TrainingSpec& spec, const PublicSizes& sizes, int64_t max_degree) {
  return Must(MakePlan(spec, sizes, max_degree));
}

v1::Plan WithNoise(v1::Plan plan, double factor) {
  plan.set_noise_multiplier(plan.noise_multiplier() * factor);
  if (plan.has_mean()) {
    plan.mutable_mean()->set_noise_stddev(plan.mean().noise_stddev() * factor);
  }
  if (plan.has_structure()) {
    plan.mutable_structure()->set_noise(plan.structure().noise() * factor);
    plan.mutable_structure()->set_value_noise(plan.structure().value_noise() * factor);
  }
  if (plan.has_aggregation()) {
    plan.mutable_aggregation()->set_noise_stddev(plan.aggregation().noise_stddev() * factor);
  }
  if (plan.has_class_shares()) {
    plan.mutable_class_shares()->set_noise_stddev(plan.class_shares().noise_stddev() * factor);
  }
  if (plan.has_evaluation()) {
    plan.mutable_evaluation()->set_noise_stddev(plan.evaluation().noise_stddev() * factor);
  }
  return plan;
}

double ClaimOf(const v1::Plan& plan, absl::string_view stage) {
  if (stage.empty()) {
    return Must(EventEpsilon(plan.event(), kDelta));
  }
  for (const Stage& one : StagesOf(plan.event())) {
    if (one.name == stage) {
      return Must(EventEpsilon(one.event, kDelta));
    }
  }
  return 0;
}

bool Always() { return true; }

}  // namespace dpar::audit
