#include "core/infer/logits.h"

#include <vector>

#include "core/infer/input_rows.h"
#include "core/pace.h"

namespace dpar {
namespace {

using WeightMatrix = Eigen::Map<const NodeMatrix>;
using DoubleRow = Eigen::RowVectorXd;

// Sums are in double: near the center scale phi(x) W and shift m W nearly cancel, and products of floats cannot
// overflow.
class Layers {
 public:
  explicit Layers(const Model& model)
      : weights_(model.weights.data(), model.feature_count + 1, model.width()),
        bias_(kBiasInput * weights_.row(model.feature_count).cast<double>()),
        center_product_(DoubleRow::Zero(model.width())),
        output_weights_(Eigen::Map<const NodeMatrix>(model.output_weights.data(), model.hidden_size, model.class_count)
                            .cast<double>()),
        input_(model.transform, model.center) {
    for (size_t i = 0; i < model.center.size(); ++i) {
      center_product_ +=
          static_cast<double>(model.center[i]) * weights_.row(static_cast<Eigen::Index>(i)).cast<double>();
    }
  }

  // z W = scale phi(x) W - shift (m W) + 0.1 b. `phi` is scratch memory.
  void FirstLayer(std::span<const int32_t> columns, std::span<const float> values, std::vector<float>& phi,
                  DoubleRow& out) const {
    phi.resize(values.size());
    TransformEntries(input_.transform(), values, phi);
    const InputScale input = input_.Scale(columns, phi);
    out = bias_ - input.shift * center_product_;
    for (size_t i = 0; i < columns.size(); ++i) {
      out += (input.scale * static_cast<double>(phi[i])) * weights_.row(columns[i]).cast<double>();
    }
  }

  void Output(const DoubleRow& first_layer, DoubleRow& out) const {
    if (output_weights_.rows() == 0) {
      out = first_layer;
    } else {
      out.noalias() = first_layer.cwiseMax(0) * output_weights_;
    }
  }

 private:
  WeightMatrix weights_;
  DoubleRow bias_;
  DoubleRow center_product_;
  Eigen::MatrixXd output_weights_;
  InputTransform input_;
};

}  // namespace

absl::StatusOr<NodeMatrix> Logits(const Model& model, const SparseRowsView& features, int threads,
                                  const std::function<bool()>& keep_going) {
  KeepGoing until_told(keep_going);
  const std::function<bool()> ask = std::ref(until_told);
  const Layers layers(model);
  NodeMatrix logits(features.row_count(), model.class_count);
  ForRowBlocks(features.row_count(), threads, [&](int64_t first, int64_t last) {
    std::vector<float> phi;
    DoubleRow first_layer(model.width());
    DoubleRow output(model.class_count);
    Pace pace(ask);
    for (int64_t row = first; row < last; ++row) {
      const auto entries = static_cast<int64_t>(features.row_columns(row).size());
      if (!pace.GoOn(entries * model.width() + model.hidden_size * model.class_count)) {
        return;
      }
      layers.FirstLayer(features.row_columns(row), features.row_values(row), phi, first_layer);
      layers.Output(first_layer, output);
      logits.row(row) = output.cwiseMax(-kLogitBound).cwiseMin(kLogitBound).cast<float>();
    }
  });
  if (until_told.stopped()) {
    return absl::CancelledError("prediction was cancelled");
  }
  return logits;
}

}  // namespace dpar
