// Synthetic graphs: a stochastic block model with class-dependent sparse features, its nodes all alike or with degrees
// that follow a power law. Made from parameters alone, so they are public and hold nobody's data.
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

// Classes differ in size by at most one node, in random order. nodes * average_degree / 2 edges are drawn. With a
// degree exponent g, both ends of an edge are drawn with weights x^(-1/(g-1)), x a node's place in a random order of
// its class as a share of the class (Chung-Lu), so that degrees above k become as rare as k^(1-g).
//
// Self loops are dropped and repeated edges merged, so the mean degree falls short of average_degree: by less than 0.1%
// for nodes all alike in classes a thousand times as large as the degree, and by more the heavier the tail, because the
// largest nodes draw each other again and again. At degree 20 in 4 classes:
//
//   degree_exponent      3       2.5     2.1
//   100,000 nodes        0.3%    3.6%    56%
//   1,000,000 nodes      0.04%   1.3%    49%
//
// INVALID_ARGUMENT names the option that is out of range; nodes * average_degree may be at most 400 million,
// nodes * features_per_node 2 billion. Time
// O(nodes * (features_per_node + average_degree)) besides the sort of rows; memory twice that of the graph.
absl::StatusOr<Graph> GenerateGraph(const GeneratorOptions& options, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GENERATE_H_
