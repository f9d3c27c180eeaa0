#include "core/infer/predict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/infer/edge_inputs.h"
#include "core/infer/logits.h"
#include "core/infer/mean_field.h"
#include "core/infer/power_iteration.h"
#include "core/infer/row_blocks.h"
#include "core/parallel.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kMaxIterations = 1000;
constexpr int64_t kBlockNodes = 1 << 16;

Prediction FromLogits(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) {
    total += std::exp(static_cast<double>(logit) - static_cast<double>(*best));
  }
  return {static_cast<int32_t>(best - logits.begin()), static_cast<float>(1 / total)};
}

Prediction FromProbabilities(std::span<const float> probabilities) {
  const auto best = std::max_element(probabilities.begin(), probabilities.end());
  return {static_cast<int32_t>(best - probabilities.begin()), *best};
}

using RowRule = Prediction (*)(std::span<const float>);

std::vector<Prediction> PredictRows(const NodeMatrix& rows, RowRule predict, int threads) {
  std::vector<Prediction> predictions(static_cast<size_t>(rows.rows()));
  ForRowBlocks(rows.rows(), threads, [&](int64_t first, int64_t last) {
    for (int64_t node = first; node < last; ++node) {
      predictions[static_cast<size_t>(node)] = predict({rows.row(node).data(), static_cast<size_t>(rows.cols())});
    }
  });
  return predictions;
}

absl::Status Validate(const Model& model, const GraphView& graph, const PredictOptions& options) {
  if (!(options.alpha > 0 && options.alpha <= 1)) {
    return InvalidField("alpha", absl::StrCat("alpha must be above 0 and at most 1, got ", options.alpha));
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("iterations", options.iterations, int64_t{0}, kMaxIterations));
  DPAR_RETURN_IF_ERROR(ValidateModel(model));
  if (graph.sizes.feature_count != model.feature_count) {
    return InvalidField("graph", absl::StrCat("the graph has ", graph.sizes.feature_count,
                                              " features, but the model was trained on ", model.feature_count));
  }
  return absl::OkStatus();
}

}  // namespace

Propagation DefaultPropagation(const Model& model) {
  return model.reads == ModelInputs::kFeatures ? Propagation::kMeanField : Propagation::kNone;
}

absl::Status PredictBlocks(const Model& model, const GraphView& graph, const PredictOptions& options,
                           const PredictionSink& sink) {
  DPAR_RETURN_IF_ERROR(Validate(model, graph, options));
  const int threads = HardwareThreads();
  const auto logits_of = [&](int64_t first, int64_t count) {
    const SparseRowsView& all = graph.features;
    const SparseRowsView rows = {all.offsets.subspan(static_cast<size_t>(first), static_cast<size_t>(count) + 1),
                                 all.columns, all.values};
    return Logits(model, rows, threads, [] { return true; });
  };
  const int64_t nodes = graph.sizes.node_count;
  const bool reads_edges = model.reads != ModelInputs::kFeatures;
  if (options.propagation == Propagation::kNone && !reads_edges) {
    for (int64_t first = 0; first < nodes; first += kBlockNodes) {
      DPAR_ASSIGN_OR_RETURN(const NodeMatrix logits, logits_of(first, std::min(kBlockNodes, nodes - first)));
      DPAR_RETURN_IF_ERROR(sink(first, PredictRows(logits, FromLogits, threads)));
    }
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(NodeMatrix logits, GraphLogits(model, graph, threads, [] { return true; }));
  if (options.propagation == Propagation::kNone) {
    return sink(0, PredictRows(logits, FromLogits, threads));
  }
  if (options.propagation == Propagation::kMeanField) {
    return sink(0, PredictRows(MeanField(graph.edges, std::move(logits), model.logit_noise, threads), FromProbabilities,
                               threads));
  }
  return sink(0, PredictRows(PowerIteration(graph.edges, logits, options, threads), FromLogits, threads));
}

absl::StatusOr<std::vector<Prediction>> Predict(const Model& model, const GraphView& graph,
                                                const PredictOptions& options) {
  std::vector<Prediction> predictions;
  DPAR_RETURN_IF_ERROR(
      PredictBlocks(model, graph, options, [&](int64_t /*first_node*/, std::span<const Prediction> block) {
        predictions.insert(predictions.end(), block.begin(), block.end());
        return absl::OkStatus();
      }));
  return predictions;
}

absl::StatusOr<double> Accuracy(const std::vector<Prediction>& predictions, std::span<const int32_t> labels) {
  if (predictions.size() != labels.size()) {
    return InvalidField("labels", "there must be one label for each prediction");
  }
  int64_t labelled = 0;
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != kUnlabelled) {
      ++labelled;
      right += predictions[i].label == labels[i] ? 1 : 0;
    }
  }
  if (labelled == 0) {
    return InvalidField("labels", "no node is labelled, so there is no accuracy");
  }
  return static_cast<double>(right) / static_cast<double>(labelled);
}

}  // namespace dpar
