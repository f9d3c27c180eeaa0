// A model's logits for feature rows, without any graph.
#ifndef DPAR_CORE_INFER_LOGITS_H_
#define DPAR_CORE_INFER_LOGITS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"
#include "core/infer/row_blocks.h"

namespace dpar {

// Keeps a model with absurd weights from giving infinities, whose differences are not numbers.
inline constexpr double kLogitBound = 1e25;

// One row of logits for each feature row. The model is valid; columns are below its feature count. Asks `keep_going`,
// from several threads, for every block of rows and at the pace of core/pace.h; CANCELLED once it says no.
absl::StatusOr<NodeMatrix> Logits(const Model& model, const SparseRowsView& features, int threads,
                                  const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_LOGITS_H_
