// Prediction on the caller's own graph. It reads the released model and that graph only, so it is post-processing and
// costs nothing, as long as the graph holds no training node.
#ifndef DPAR_CORE_INFER_PREDICT_H_
#define DPAR_CORE_INFER_PREDICT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"

namespace dpar {

enum class Propagation {
  kNone,   // each node from its own features
  kPower,  // Q_0 = H, Q_p = (1 - alpha) D^-1 A Q_{p-1} + alpha H; isolated nodes keep H
};

struct PredictOptions {
  Propagation propagation = Propagation::kPower;
  double alpha = 0.25;
  int64_t iterations = 2;
};

struct Prediction {
  int32_t label = 0;
  float probability = 0;  // of that label
};

// One prediction for each node. INVALID_ARGUMENT when the feature widths differ or an option is out of range
// (alpha in (0, 1], iterations 0..1000).
absl::StatusOr<std::vector<Prediction>> Predict(const LinearModel& model, const GraphView& graph,
                                                const PredictOptions& options);

// Share of labelled nodes predicted right. INVALID_ARGUMENT when none is labelled.
absl::StatusOr<double> Accuracy(const std::vector<Prediction>& predictions, std::span<const int32_t> labels);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_PREDICT_H_
