// The inputs of models that read edges: a row for each node, made of the node and its neighbours, for training and for
// prediction.
//   kNeighbourMean  2 d columns: the node's own input z without its bias (input_rows.h), then the mean of those of its
//                   neighbours, 0 for a node without any.
//   kHops           hops + 1 blocks of e columns: the node's encoding relu(z W) scaled to length 1, then for each hop
//                   the sum of its neighbours' block before, scaled to length 1. A sum of 0 stays 0.
#ifndef DPAR_CORE_INFER_EDGE_INPUTS_H_
#define DPAR_CORE_INFER_EDGE_INPUTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"
#include "core/infer/row_blocks.h"

namespace dpar {

// Scales a row to a length of 1, in exact arithmetic never above it. Zero, or not finite: all entries become 0.
void ScaleToUnit(std::span<const double> row, float* out);

// A row depends only on the node's own features, its list and the features of those in it. Time O(entries of all
// lists), memory the result and O(d). Asks `keep_going` at the pace of core/pace.h; CANCELLED once it says no.
absl::StatusOr<SparseRows> NeighbourMeanRows(const SparseRowsView& features, int64_t feature_count,
                                             const EdgesView& lists, v1::Transform transform,
                                             const std::function<bool()>& keep_going);

// The encodings of kHops, with the encoder's weights W, (d + 1) x e. A row depends on the node's own features alone.
absl::StatusOr<NodeMatrix> EncodeRows(const SparseRowsView& features, int64_t feature_count, v1::Transform transform,
                                      const std::vector<float>& weights, int64_t encoder_size, int threads,
                                      const std::function<bool()>& keep_going);

SparseRows JoinBlocks(const std::vector<NodeMatrix>& blocks);

// CANCELLED once `keep_going` says no.
absl::StatusOr<NodeMatrix> GraphLogits(const Model& model, const GraphView& graph, int threads,
                                       const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_EDGE_INPUTS_H_
