#include "core/train/train.h"

#include <ATen/ATen.h>
#include <google/protobuf/util/json_util.h>
#include <torch/cuda.h>

#include <cmath>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/random/lattice.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// Clipping aims below C by this factor, so that rounding in a row's own norm (relative error at most (entries + c + 8)
// u, below 1e-9 for rows of up to four million entries) cannot carry a clipped gradient beyond C.
constexpr double kClipGuard = 1 - 1e-9;

// Weighted bags of indices: what a sparse product gathers.
struct Bags {
  at::Tensor indices;
  at::Tensor offsets;
  at::Tensor weights;

  // Row b of the result is the weighted sum of the rows of `matrix` that bag b lists.
  [[nodiscard]] at::Tensor Gather(const at::Tensor& matrix) const {
    return std::get<0>(at::embedding_bag(matrix, indices, offsets, /*scale_grad_by_freq=*/false, /*mode=*/0,
                                         /*sparse=*/false, weights, /*include_last_offset=*/true));
  }
};

template <typename T>
at::Tensor ToTensor(const std::vector<T>& values, at::ScalarType type, const at::Device& device) {
  // The copy owns its memory; from_blob alone would not outlive `values`.
  return at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())}, type).clone().to(device);
}

Bags RowBags(const TransformedRows& rows, const at::Device& device) {
  return {ToTensor(rows.columns, at::kInt, device).to(at::kLong), ToTensor(rows.offsets, at::kLong, device),
          ToTensor(rows.values, at::kDouble, device)};
}

// The same entries by column: bag j lists the rows that have feature j, in ascending order. O(entries + d).
Bags ColumnBags(const TransformedRows& rows, int64_t column_count, const at::Device& device) {
  std::vector<int64_t> offsets(static_cast<size_t>(column_count) + 1, 0);
  for (const int32_t column : rows.columns) {
    ++offsets[static_cast<size_t>(column) + 1];
  }
  for (size_t j = 1; j < offsets.size(); ++j) {
    offsets[j] += offsets[j - 1];
  }
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  std::vector<int64_t> owners(rows.columns.size());
  std::vector<double> values(rows.columns.size());
  for (size_t row = 0; row + 1 < rows.offsets.size(); ++row) {
    for (auto k = static_cast<size_t>(rows.offsets[row]); k < static_cast<size_t>(rows.offsets[row + 1]); ++k) {
      const auto at = static_cast<size_t>(next[static_cast<size_t>(rows.columns[k])]++);
      owners[at] = static_cast<int64_t>(row);
      values[at] = rows.values[k];
    }
  }
  return {ToTensor(owners, at::kLong, device), ToTensor(offsets, at::kLong, device),
          ToTensor(values, at::kDouble, device)};
}

// The training rows on a device. A row's gradient is the outer product of its input z (features and bias input) and
// p - y, so its norm is |z| |p - y| and no per-row gradient is ever formed.
class Rows {
 public:
  Rows(const GraphView& graph, const at::Device& device) : Rows(TransformRows(graph.features), graph, device) {}

  // The sum of all clipped gradients at `weights`, (d + 1) x c. A row without a label, or whose gradient is not finite,
  // contributes exactly 0.
  [[nodiscard]] at::Tensor ClippedSum(const at::Tensor& weights, double clip) const {
    const int64_t d = weights.size(0) - 1;
    const at::Tensor logits = by_row_.Gather(weights.narrow(0, 0, d)) + kBiasInput * weights.narrow(0, d, 1);
    const at::Tensor residual = at::softmax(logits, 1) - targets_;
    const at::Tensor norm = input_norm_ * at::sqrt(residual.square().sum(1));
    at::Tensor scale = (clip * kClipGuard / norm).clamp_max(1) * labelled_;
    scale = at::where(at::isfinite(norm), scale, at::zeros_like(scale));
    const at::Tensor clipped = at::nan_to_num(residual, 0, 0, 0) * scale.unsqueeze(1);
    return at::cat({by_column_.Gather(clipped), kBiasInput * clipped.sum(0, /*keepdim=*/true)}, 0);
  }

 private:
  Rows(const TransformedRows& rows, const GraphView& graph, const at::Device& device)
      : by_row_(RowBags(rows, device)), by_column_(ColumnBags(rows, graph.sizes.feature_count, device)) {
    const int64_t n = graph.sizes.node_count;
    std::vector<double> norms(static_cast<size_t>(n));
    std::vector<double> labelled(static_cast<size_t>(n));
    std::vector<double> targets(static_cast<size_t>(n * graph.sizes.class_count), 0.0);
    for (size_t i = 0; i < norms.size(); ++i) {
      double square = kBiasInput * kBiasInput;
      for (auto k = static_cast<size_t>(rows.offsets[i]); k < static_cast<size_t>(rows.offsets[i + 1]); ++k) {
        square += rows.values[k] * rows.values[k];
      }
      norms[i] = std::sqrt(square);
      if (graph.labels[i] != kUnlabelled) {
        labelled[i] = 1;
        targets[i * static_cast<size_t>(graph.sizes.class_count) + static_cast<size_t>(graph.labels[i])] = 1;
      }
    }
    input_norm_ = ToTensor(norms, at::kDouble, device);
    labelled_ = ToTensor(labelled, at::kDouble, device);
    targets_ = ToTensor(targets, at::kDouble, device).reshape({n, graph.sizes.class_count});
  }

  Bags by_row_;
  Bags by_column_;
  at::Tensor input_norm_;
  at::Tensor labelled_;
  at::Tensor targets_;
};

absl::Status ValidatePlan(const v1::Plan& plan, const GraphView& graph) {
  if (plan.method() != v1::FEATURES || plan.training_slots() != graph.sizes.node_count ||
      static_cast<int64_t>(graph.labels.size()) != graph.sizes.node_count ||
      graph.features.row_count() != graph.sizes.node_count || !plan.event().has_gaussian()) {
    return InvalidField("plan", "the plan does not belong to a graph of these sizes");
  }
  return absl::OkStatus();
}

// What a reader of the model file needs to use it: the input transform and the plan. All of it is public.
absl::StatusOr<std::string> Metadata(const v1::Plan& plan) {
  std::string plan_json;
  if (!google::protobuf::util::MessageToJsonString(plan, &plan_json).ok()) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "the plan could not be written as JSON");
  }
  return absl::StrCat(R"({"format":1,"transform":"sqrt-unit-bias","plan":)", plan_json, "}");
}

// T full-batch steps of gradient descent with momentum; the last iterate is the model.
absl::StatusOr<at::Tensor> Descend(const v1::Plan& plan, const GraphView& graph, const at::Device& device,
                                   RandomSource& random, const StepCallback& on_step) {
  const Rows rows(graph, device);
  const auto options = at::TensorOptions().dtype(at::kDouble).device(device);
  at::Tensor weights = at::zeros({graph.sizes.feature_count + 1, graph.sizes.class_count}, options);
  at::Tensor velocity = at::zeros_like(weights);
  for (int64_t step = 0; step < plan.steps(); ++step) {
    at::Tensor sum = rows.ClippedSum(weights, plan.gradient_clip()).to(at::kCPU).contiguous();
    AddLatticeNoise(random, plan.event().gaussian().noise_stddev(), plan.lattice_bits(),
                    {sum.data_ptr<double>(), static_cast<size_t>(sum.numel())});
    const at::Tensor gradient = sum.to(device) / static_cast<double>(plan.training_slots());
    velocity.mul_(plan.momentum()).add_(gradient);
    weights.sub_(plan.learning_rate() * velocity);
    if (!on_step(step + 1)) {
      return absl::CancelledError("training was cancelled");
    }
  }
  return weights;
}

}  // namespace

absl::StatusOr<LinearModel> Train(const v1::Plan& plan, const GraphView& graph, const std::string& device,
                                  RandomSource& random, const StepCallback& on_step) {
  DPAR_RETURN_IF_ERROR(ValidatePlan(plan, graph));
  try {
    const at::NoGradGuard no_gradients;
    DPAR_ASSIGN_OR_RETURN(const at::Tensor weights, Descend(plan, graph, at::Device(device), random, on_step));
    const at::Tensor released = weights.to(at::kCPU).to(at::kFloat).contiguous();
    LinearModel model;
    model.feature_count = graph.sizes.feature_count;
    model.class_count = graph.sizes.class_count;
    DPAR_ASSIGN_OR_RETURN(model.metadata, Metadata(plan));
    model.weights.assign(released.data_ptr<float>(), released.data_ptr<float>() + released.numel());
    return model;
  } catch (const std::exception&) {
    // LibTorch's messages may quote sizes of the data.
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "training failed");
  }
}

std::vector<std::string> AvailableDevices() {
  std::vector<std::string> devices;
  for (size_t i = 0; i < torch::cuda::device_count(); ++i) {
    devices.push_back(absl::StrCat("cuda:", i));
  }
  devices.emplace_back("cpu");
  return devices;
}

}  // namespace dpar
