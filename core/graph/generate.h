// Synthetic graphs: a stochastic block model with class-dependent sparse features. Made from parameters alone, so they
// are public and hold nobody's data.
#ifndef DPAR_CORE_GRAPH_GENERATE_H_
#define DPAR_CORE_GRAPH_GENERATE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/random/random.h"

namespace dpar {

struct GeneratorOptions {
  int64_t nodes = 2000;            // 1..20'000'000
  int64_t classes = 4;             // 2..1000
  int64_t features = 500;          // classes..1'000'000
  double average_degree = 8;       // 0..1000
  double homophily = 0.8;          // probability that an edge joins two nodes of the same class, 0..1
  int64_t features_per_node = 20;  // drawn entries of a row before merging, 1..features
  double signal = 0.5;             // probability that an entry comes from the class's own block of columns, 0..1
};

// Classes differ in size by at most one node, in random order. Repeated edges are merged, so the mean degree falls
// short of average_degree where that is not far below the class size. INVALID_ARGUMENT names the option that is out of
// range; nodes * average_degree may be at most 400 million, nodes * features_per_node 2 billion. Time and memory
// O(nodes * (features_per_node + average_degree)).
absl::StatusOr<Graph> GenerateGraph(const GeneratorOptions& options, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GENERATE_H_
