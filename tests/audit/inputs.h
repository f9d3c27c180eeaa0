// Small graphs to attack with, and plans for them. Failures throw: an audit that cannot be set up must not pass.
#ifndef DPAR_TESTS_AUDIT_INPUTS_H_
#define DPAR_TESTS_AUDIT_INPUTS_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar::audit {

// One node of a graph: its label and one feature.
struct Node {
  int32_t label = 0;
  int32_t column = 0;
  float value = 1;
};

// A graph of these nodes, with as many columns and classes as given.
Graph GraphOf(const std::vector<Node>& nodes, const std::vector<std::pair<int32_t, int32_t>>& edges, int64_t columns,
              int64_t classes);

// Edges from node 0 to 1..leaves.
std::vector<std::pair<int32_t, int32_t>> StarEdges(int32_t leaves);

// A graph and what is left of it when one node is made null.
struct Neighbours {
  Graph with;
  Graph without;

  [[nodiscard]] const Graph& of(bool is_with) const { return is_with ? with : without; }
};
Neighbours Remove(const Graph& graph, int64_t node);

// A request for this method and epsilon at kDelta: one step of plain gradient descent without a mean, unless set
// otherwise. Methods that read edges have no mean, and their own optimizer but for its steps.
v1::TrainingSpec SpecOf(v1::Method method, double epsilon);
// With a degree promise for methods that need one.
v1::Plan PlanFor(const v1::TrainingSpec& spec, const PublicSizes& sizes, int64_t max_degree = 0);

// The plan with all its noise times `factor`.
v1::Plan WithNoise(v1::Plan plan, double factor);

// What a stage of the plan's event costs at kDelta, by the accountant; 0 for a stage that is not charged. Without a
// name, what all of it costs.
double ClaimOf(const v1::Plan& plan, absl::string_view stage = "");

bool Always();

template <typename T>
T Must(absl::StatusOr<T> result) {
  if (!result.ok()) {
    throw std::runtime_error(result.status().ToString());
  }
  return *std::move(result);
}

}  // namespace dpar::audit

#endif  // DPAR_TESTS_AUDIT_INPUTS_H_
