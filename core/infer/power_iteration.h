// Propagation::kPower.
#ifndef DPAR_CORE_INFER_POWER_ITERATION_H_
#define DPAR_CORE_INFER_POWER_ITERATION_H_

#include "core/graph/graph.h"
#include "core/infer/predict.h"
#include "core/infer/row_blocks.h"

namespace dpar {

NodeMatrix PowerIteration(const EdgesView& edges, const NodeMatrix& logits, const PredictOptions& options, int threads);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_POWER_ITERATION_H_
