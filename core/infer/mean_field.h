// Propagation::kMeanField.
#ifndef DPAR_CORE_INFER_MEAN_FIELD_H_
#define DPAR_CORE_INFER_MEAN_FIELD_H_

#include "core/graph/graph.h"
#include "core/infer/row_blocks.h"

namespace dpar {

// Class probabilities, a row for each node, from its scores U (finite); softmax(U) without edges. Time
// 30 (2 E c + N c^2); memory three matrices of N x c floats, `scores` included.
NodeMatrix MeanField(const EdgesView& edges, const NodeMatrix& scores, int threads);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_MEAN_FIELD_H_
