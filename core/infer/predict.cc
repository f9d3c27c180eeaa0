#include "core/infer/predict.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/infer/edge_inputs.h"
#include "core/infer/propagate.h"
#include "core/infer/row_blocks.h"
#include "core/parallel.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kBlockNodes = 1 << 16;

Prediction FromLogits(std::span<const float> logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) {
    total += std::exp(static_cast<double>(logit) - static_cast<double>(*best));
  }
  return {static_cast<int32_t>(best - logits.begin()), static_cast<float>(1 / total)};
}

absl::Status SendBlocks(const NodeMatrix& rows, int threads, const PredictionSink& sink) {
  for (int64_t start = 0; start < rows.rows(); start += kBlockNodes) {
    std::vector<Prediction> block(static_cast<size_t>(std::min(kBlockNodes, rows.rows() - start)));
    ForRowBlocks(static_cast<int64_t>(block.size()), threads, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        block[static_cast<size_t>(i)] = FromLogits({rows.row(start + i).data(), static_cast<size_t>(rows.cols())});
      }
    });
    DPAR_RETURN_IF_ERROR(sink(start, block));
  }
  return absl::OkStatus();
}

absl::Status Validate(const Model& model, const GraphView& graph, const PredictOptions& options) {
  DPAR_RETURN_IF_ERROR(ValidatePropagation(options));
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

absl::StatusOr<std::optional<LabelShift>> PredictBlocks(const Model& model, const GraphView& graph,
                                                        const PredictOptions& options, const PredictionSink& sink) {
  DPAR_RETURN_IF_ERROR(Validate(model, graph, options));
  const int threads = HardwareThreads();
  DPAR_ASSIGN_OR_RETURN(NodeMatrix logits, GraphLogits(model, graph, threads, [] { return true; }));
  Propagated propagated = Propagate(model, graph.edges, std::move(logits), options, threads);
  DPAR_RETURN_IF_ERROR(SendBlocks(propagated.rows, threads, sink));
  return std::move(propagated.shift);
}

absl::StatusOr<std::vector<Prediction>> Predict(const Model& model, const GraphView& graph,
                                                const PredictOptions& options) {
  std::vector<Prediction> predictions;
  DPAR_RETURN_IF_ERROR(
      PredictBlocks(model, graph, options, [&](int64_t /*first_node*/, std::span<const Prediction> block) {
        predictions.insert(predictions.end(), block.begin(), block.end());
        return absl::OkStatus();
      }).status());
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
