// Prediction on the caller's own graph. It reads the released model and that graph only, so it is post-processing and
// costs nothing, as long as the graph holds no training node.
//
// Models that read edges take E e hops, or the features of all neighbours, for their inputs first, and hold them for
// every node. Otherwise: time, with N nodes, E edges, F feature entries, c classes, w the width of the first layer: F w
// for the logits, then P E c for `power`, 30 (2 E c + N c^2) for `mean-field`. Memory: `none` looks at each node alone
// and holds one block of nodes, however large the graph; the others need every node's neighbours, hence a few matrices
// of N x c floats, while edges and features stay where they are mapped.
#ifndef DPAR_CORE_INFER_PREDICT_H_
#define DPAR_CORE_INFER_PREDICT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"

namespace dpar {

// Of models that read edges themselves (Model.reads), the logits H below are made with them, and what follows comes on
// top.
enum class Propagation {
  kNone,   // each node by its logits alone, which for most models are of its own features
  kPower,  // Q_0 = H, Q_p = (1 - alpha) S Q_{p-1} + alpha H; nodes without neighbours keep H
  // Learns which classes link to which on the graph itself. With logits H, the noise nu in them (Model.logit_noise) and
  // A the adjacency without self loops: U = 2 H / sqrt(1 + pi nu^2 / 8), q = softmax(U), and 30 times
  //   J = q^T A q + its transpose + 2e-3 sum(A) / c^2,   p = row sums of J,   psi_ab = J_ab sum(p) / (p_a p_b),
  //   q' = softmax(U + A log(q psi^T + 1e-9)),   q <- q' the first time, (q + q') / 2 after.
  kMeanField,
};

// S of power iteration: the adjacency A (with I added for self loops) and its degrees D.
enum class Normalisation {
  kRow,        // D^-1 A
  kSymmetric,  // D^-1/2 A D^-1/2
};

// What a model is predicted with unless somebody asks for another: mean-field, or nothing on top of a model that reads
// edges itself, which would count them twice.
Propagation DefaultPropagation(const Model& model);

struct PredictOptions {
  Propagation propagation = Propagation::kMeanField;
  // Power iteration only.
  double alpha = 0.25;
  int64_t iterations = 2;  // P
  Normalisation normalisation = Normalisation::kRow;
  bool self_loops = false;
};

struct Prediction {
  int32_t label = 0;
  float probability = 0;  // of that label
};

// One prediction for each node; it does not depend on the number of threads. INVALID_ARGUMENT when the feature widths
// differ or an option is out of range (alpha in (0, 1], iterations 0..1000).
absl::StatusOr<std::vector<Prediction>> Predict(const Model& model, const GraphView& graph,
                                                const PredictOptions& options);

// The same, handed over in consecutive blocks from the first node on, so that the predictions of a graph need not fit
// into memory either. Ends with the sink's first error.
using PredictionSink = std::function<absl::Status(int64_t first_node, std::span<const Prediction> predictions)>;
absl::Status PredictBlocks(const Model& model, const GraphView& graph, const PredictOptions& options,
                           const PredictionSink& sink);

// Share of labelled nodes predicted right. INVALID_ARGUMENT when none is labelled.
absl::StatusOr<double> Accuracy(const std::vector<Prediction>& predictions, std::span<const int32_t> labels);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_PREDICT_H_
