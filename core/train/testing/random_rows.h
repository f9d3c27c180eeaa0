// Small graphs, rows and weights for tests of the engines.
#ifndef DPAR_CORE_TRAIN_TESTING_RANDOM_ROWS_H_
#define DPAR_CORE_TRAIN_TESTING_RANDOM_ROWS_H_

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/random/random.h"
#include "core/train/engine.h"
#include "core/train/rows.h"

namespace dpar::testing {

// N nodes with features of about `density` and labels; no edges. A density of 1 is dense features.
Graph RandomFeatures(int64_t nodes, int64_t features, int64_t classes, double density, RandomSource& random);

// Rows of exactly `k` slots each, with repetition, normal weights, and every fifth weight 0.
RowList RandomRows(const Graph& graph, int64_t rows, int64_t k, RandomSource& random);

// Normal weights of this scale, padded as engines want them.
std::vector<float> RandomWeights(const WeightShape& shape, double scale, RandomSource& random);

// 0, 1, ..., count - 1.
std::vector<int64_t> AllRows(int64_t count);

// G with node v null: no features, no label, no edges; its slot stays. Made by hand: neighbours that the code under
// test makes would share its faults.
Graph WithNull(const Graph& graph, int64_t v);

}  // namespace dpar::testing

#endif  // DPAR_CORE_TRAIN_TESTING_RANDOM_ROWS_H_
