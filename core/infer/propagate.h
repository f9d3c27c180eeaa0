// From logits to the class probabilities of every node: label shift, then the rule of PredictOptions.
#ifndef DPAR_CORE_INFER_PROPAGATE_H_
#define DPAR_CORE_INFER_PROPAGATE_H_

#include <optional>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"
#include "core/infer/predict.h"
#include "core/infer/row_blocks.h"

namespace dpar {

struct Propagated {
  NodeMatrix rows;                  // for each node scores, of which Probabilities makes them
  std::optional<LabelShift> shift;  // as PredictBlocks
};

// INVALID_ARGUMENT unless alpha is in (0, 1] and iterations in 0..1000.
absl::Status ValidatePropagation(const PredictOptions& options);

// `logits` are finite, a row for each node and a column for each class; options are valid. The result does not depend
// on `threads`.
Propagated Propagate(const Model& model, const EdgesView& edges, NodeMatrix logits, const PredictOptions& options,
                     int threads);

// A row has, at the label that Predict gives, the probability that Predict gives, and no entry exceeds it.
NodeMatrix Probabilities(Propagated propagated, int threads);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_PROPAGATE_H_
