// Propagation::kMeanField.
#ifndef DPAR_CORE_INFER_MEAN_FIELD_H_
#define DPAR_CORE_INFER_MEAN_FIELD_H_

#include "core/graph/graph.h"
#include "core/infer/row_blocks.h"

namespace dpar {

// Class probabilities, a row for each node, from H = `logits` (finite) with noise of standard deviation `logit_noise`;
// softmax(U) without edges. Time 30 (2 E c + N c^2); memory three matrices of N x c floats, `logits` included.
NodeMatrix MeanField(const EdgesView& edges, NodeMatrix logits, double logit_noise, int threads);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_MEAN_FIELD_H_
