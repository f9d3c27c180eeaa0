// Synthetic graphs, public because made from parameters alone: stochastic block model, class-dependent sparse features.
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
  double degree_exponent = 0;      // 0: all nodes alike; otherwise of the degree distribution's tail, 2.1..10
  double homophily = 0.8;          // probability that an edge joins two nodes of the same class, 0..1
  int64_t features_per_node = 20;  // drawn entries of a row before merging, 1..features
  double signal = 0.5;             // probability that an entry comes from the class's own block of columns, 0..1
};

// Classes differ in size by at most one node, in random order. Draws nodes * average_degree / 2 edges. With a degree
// exponent g, both ends are drawn with weights x^(-1/(g-1)), x a node's place in a random order of its class as a share
// of the class (Chung-Lu), so that degrees above k become as rare as k^(1-g). Self loops are dropped and repeated edges
// merged, which lowers the mean degree: hardly for even degrees, by half at exponent 2.1.
// INVALID_ARGUMENT names the option. nodes * average_degree is at most 400 million, nodes * features_per_node 2
// billion. Time O(nodes * (features_per_node + average_degree)) plus sorting; memory twice the graph.
absl::StatusOr<Graph> GenerateGraph(const GeneratorOptions& options, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GENERATE_H_
