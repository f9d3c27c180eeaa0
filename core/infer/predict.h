// Prediction on the caller's own graph. It reads the released model and that graph only, so it is post-processing, as
// long as the graph holds no training node.
//
// Models that read edges first make and hold inputs for every node. Then, with N nodes, E edges, F feature entries, c
// classes and a first layer of width w, time is F w for the logits, plus P E c for `power` or 30 (2 E c + N c^2) for
// `mean-field`, up to six times that where label shift is found; looking for shift adds up to 30 N c. All hold matrices
// of N x c floats (one, or three for `mean-field`). Edges and features stay mapped.
#ifndef DPAR_CORE_INFER_PREDICT_H_
#define DPAR_CORE_INFER_PREDICT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"

namespace dpar {

// On top of the logits H, which models that read edges (Model.reads) make with them.
enum class Propagation {
  // Each node by its own scores U (below) alone, which for most models are of its own features.
  kNone,
  kPower,  // Q_0 = H, Q_p = (1 - alpha) S Q_{p-1} + alpha H; nodes without neighbours keep H
  // Learns which classes link to which on the graph. With U the scores (core/infer/label_shift.h: H tempered by its
  // noise, corrected where label shift is found), w the neighbours' weight (core/infer/neighbour_weight.h: 1 where no
  // shift is found) and A the adjacency without self loops: q = softmax(U), and 30 times
  //   J = q^T A q + its transpose + 2e-3 sum(A) / c^2,   p = row sums of J,   psi_ab = J_ab sum(p) / (p_a p_b),
  //   S = U + w A log(q psi^T + 1e-9),   q' = softmax(S),   q <- q' the first time, (q + q') / 2 after.
  // The best class of S, computed once more at the end.
  kMeanField,
};

// S of power iteration: the adjacency A (with I added for self loops) and its degrees D.
enum class Normalisation {
  kRow,        // D^-1 A
  kSymmetric,  // D^-1/2 A D^-1/2
};

// mean-field, or none for a model that reads edges itself, which would count them twice.
Propagation DefaultPropagation(const Model& model);

struct PredictOptions {
  Propagation propagation = Propagation::kMeanField;
  bool shift = true;       // none and mean-field: whether label shift is looked for and corrected
  double alpha = 0.25;     // this and the rest: power iteration only
  int64_t iterations = 2;  // P
  Normalisation normalisation = Normalisation::kRow;
  bool self_loops = false;
};

struct Prediction {
  int32_t label = 0;
  // Of that label. For `none` and mean-field, about how often such predictions are right (neighbour_weight.h).
  float probability = 0;
};

// One prediction for each node, whatever the number of threads. INVALID_ARGUMENT when the feature widths differ or an
// option is out of range (alpha in (0, 1], iterations 0..1000).
absl::StatusOr<std::vector<Prediction>> Predict(const Model& model, const GraphView& graph,
                                                const PredictOptions& options);

// Label shift: the classes of the caller's graph are mixed differently than those of the training graph, as in a
// connected region or in another month (core/infer/label_shift.h).
struct LabelShift {
  double distance = 0;   // between the predicted class shares of the caller's graph and the model's, 0..1
  double threshold = 0;  // up to which a distance is noise and chance
  // Added to every node's scores, one entry for each class; empty where no shift was found.
  std::vector<double> correction;
  double neighbour_weight = 1;  // of mean-field; less where shift was found and neighbours speak against features
  [[nodiscard]] bool found() const { return !correction.empty(); }
};

// The same in consecutive blocks, so that predictions need not fit into memory. Ends with the sink's first error.
// Returns what was found of label shift, or nothing where it was not looked for: the model has no class shares, the
// graph has no node, the rule is `power`, or options.shift is false.
using PredictionSink = std::function<absl::Status(int64_t first_node, std::span<const Prediction> predictions)>;
absl::StatusOr<std::optional<LabelShift>> PredictBlocks(const Model& model, const GraphView& graph,
                                                        const PredictOptions& options, const PredictionSink& sink);

// Of the labelled nodes. INVALID_ARGUMENT when none is labelled.
absl::StatusOr<double> Accuracy(const std::vector<Prediction>& predictions, std::span<const int32_t> labels);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_PREDICT_H_
