// Propagation::kMeanField.
#ifndef DPAR_CORE_INFER_MEAN_FIELD_H_
#define DPAR_CORE_INFER_MEAN_FIELD_H_

#include "core/graph/graph.h"
#include "core/infer/row_blocks.h"

namespace dpar {

// Each node's scores with what its neighbours say, S of predict.h, from its own scores U (finite); less the largest of
// the row, so that it is 0. `weight` is the neighbours', 0 to 1. Time 30 (2 E c + N c^2); memory three matrices of N x
// c floats, `scores` included.
NodeMatrix MeanField(const EdgesView& edges, const NodeMatrix& scores, double weight, int threads);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_MEAN_FIELD_H_
