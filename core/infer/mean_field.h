// Propagation::kMeanField.
#ifndef DPAR_CORE_INFER_MEAN_FIELD_H_
#define DPAR_CORE_INFER_MEAN_FIELD_H_

#include "core/graph/graph.h"
#include "core/infer/row_blocks.h"

namespace dpar {

// The probabilities q, a row for each node, from H = `logits` with noise of standard deviation `logit_noise` in them;
// softmax(U) where there is no edge. Logits are finite. Time 30 (2 E c + N c^2); memory three matrices of N x c floats,
// `logits` being one of them.
NodeMatrix MeanField(const EdgesView& edges, NodeMatrix logits, double logit_noise, int threads);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_MEAN_FIELD_H_
