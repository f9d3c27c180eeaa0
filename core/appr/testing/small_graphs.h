// Graphs that tests of core/appr are about: tiny ones by their edges, random ones by their sizes, and their neighbours
// in the sense of differential privacy.
#ifndef DPAR_CORE_APPR_TESTING_SMALL_GRAPHS_H_
#define DPAR_CORE_APPR_TESTING_SMALL_GRAPHS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "core/appr/solver.h"
#include "core/graph/graph.h"
#include "core/random/random.h"

namespace dpar::testing {

// A graph with these undirected edges. Every slot has a label and no features, so none is null.
Graph GraphOf(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges);

// `edges` pairs drawn uniformly, of which loops and repetitions are dropped.
Graph RandomGraph(int64_t nodes, int64_t edges, RandomSource& random);

// Node 0 in the middle of 1..leaves.
Graph Star(int64_t leaves);

// The graph with one node made null: no features, no label, no edges; its slot stays.
Graph WithNullNode(const Graph& graph, int32_t node);

// The vector with its zeros.
std::vector<double> Dense(const SparseVector& vector, int64_t nodes);

// The l1 distance of two vectors.
double Distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace dpar::testing

#endif  // DPAR_CORE_APPR_TESTING_SMALL_GRAPHS_H_
