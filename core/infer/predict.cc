#include "core/infer/predict.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/infer/transform_row.h"
#include "core/parallel.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMatrixMap = Eigen::Map<const Matrix>;

constexpr int64_t kMaxIterations = 1000;
// Multiply-adds below which starting threads costs more than it saves.
constexpr int64_t kWorkPerThread = 4'000'000;
// Keeps a model with absurd weights from giving infinities, whose differences and averages are not numbers.
constexpr float kLogitBound = 1e25F;

// Calls body(first, last) for blocks that cover 0..rows-1. Every row is computed by one thread in a fixed order, so the
// result does not depend on the number of threads.
void ForRowBlocks(int64_t rows, int64_t work, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t most = std::min<int64_t>(HardwareThreads(), std::max<int64_t>(rows, 1));
  const int64_t blocks = std::clamp<int64_t>(work / kWorkPerThread, 1, most);
  ParallelFor(blocks, static_cast<int>(blocks),
              [&](int /*worker*/, int64_t block) { body(rows * block / blocks, rows * (block + 1) / blocks); });
}

Matrix Logits(const LinearModel& model, const SparseRowsView& features) {
  const ConstMatrixMap weights(model.weights.data(), model.feature_count + 1, model.class_count);
  Matrix logits(features.row_count(), model.class_count);
  const int64_t work = (static_cast<int64_t>(features.columns.size()) + features.row_count()) * model.class_count;
  ForRowBlocks(features.row_count(), work, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      auto out = logits.row(row);
      out = static_cast<float>(kBiasInput) * weights.row(model.feature_count);
      TransformRow(features.row_columns(row), features.row_values(row),
                   [&](int32_t column, double value) { out += static_cast<float>(value) * weights.row(column); });
      out = out.unaryExpr(
          [](float logit) { return std::isnan(logit) ? 0.0F : std::clamp(logit, -kLogitBound, kLogitBound); });
    }
  });
  return logits;
}

Matrix Propagate(const GraphView& graph, const Matrix& logits, float alpha, int64_t iterations) {
  Matrix current = logits;
  Matrix next(logits.rows(), logits.cols());
  const int64_t work = (static_cast<int64_t>(graph.edges.neighbours.size()) + logits.rows()) * logits.cols();
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    ForRowBlocks(logits.rows(), work, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        const auto neighbours = graph.edges.neighbours_of(row);
        if (neighbours.empty()) {
          next.row(row) = logits.row(row);
          continue;
        }
        auto out = next.row(row);
        out.setZero();
        for (const int32_t neighbour : neighbours) {
          out += current.row(neighbour);
        }
        out = out * ((1 - alpha) / static_cast<float>(neighbours.size())) + alpha * logits.row(row);
      }
    });
    current.swap(next);
  }
  return current;
}

// The most probable class; the lowest of those that tie.
Prediction PredictRow(const float* logits, int64_t class_count) {
  const float* best = std::max_element(logits, logits + class_count);
  double total = 0;
  for (int64_t k = 0; k < class_count; ++k) {
    total += std::exp(static_cast<double>(logits[k]) - static_cast<double>(*best));
  }
  return {static_cast<int32_t>(best - logits), static_cast<float>(1 / total)};
}

absl::Status Validate(const LinearModel& model, const GraphView& graph, const PredictOptions& options) {
  if (!(options.alpha > 0 && options.alpha <= 1)) {
    return InvalidField("alpha", absl::StrCat("alpha must be above 0 and at most 1, got ", options.alpha));
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("iterations", options.iterations, int64_t{0}, kMaxIterations));
  const bool model_is_whole =
      model.feature_count >= 1 && model.class_count >= 1 &&
      static_cast<int64_t>(model.weights.size()) == (model.feature_count + 1) * model.class_count;
  if (!model_is_whole) {
    return InvalidField("model", "the model's weights disagree with its sizes");
  }
  if (graph.sizes.feature_count != model.feature_count) {
    return InvalidField("graph", absl::StrCat("the graph has ", graph.sizes.feature_count,
                                              " features, but the model was trained on ", model.feature_count));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Prediction>> Predict(const LinearModel& model, const GraphView& graph,
                                                const PredictOptions& options) {
  DPAR_RETURN_IF_ERROR(Validate(model, graph, options));
  Matrix scores = Logits(model, graph.features);
  if (options.propagation == Propagation::kPower) {
    scores = Propagate(graph, scores, static_cast<float>(options.alpha), options.iterations);
  }
  std::vector<Prediction> predictions(static_cast<size_t>(scores.rows()));
  ForRowBlocks(scores.rows(), scores.size(), [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      predictions[static_cast<size_t>(row)] = PredictRow(scores.row(row).data(), model.class_count);
    }
  });
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
