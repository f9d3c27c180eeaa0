#include "core/train/testing/per_row_autograd.h"

#include <torch/torch.h>

#include <cmath>

namespace dpar::testing {
namespace {

// z of a slot, dense, in double.
at::Tensor DenseInput(const Graph& graph, int32_t slot, v1::Transform transform, const std::vector<float>& center) {
  const auto d = static_cast<size_t>(graph.sizes.feature_count);
  std::vector<double> x(d, 0.0);
  const GraphView view = graph;
  for (size_t i = 0; i < view.features.row_columns(slot).size(); ++i) {
    const auto value = static_cast<double>(view.features.row_values(slot)[i]);
    const bool root = transform == v1::SQRT_UNIT;
    x[static_cast<size_t>(view.features.row_columns(slot)[i])] =
        root ? std::copysign(std::sqrt(std::fabs(value)), value) : value;
  }
  at::Tensor z = torch::tensor(x, torch::kDouble);
  if (transform != v1::RAW) {
    const double norm = z.norm().item<double>();
    z = norm > 0 ? z / norm : z;
    if (!center.empty()) {
      z = z - torch::tensor(std::vector<double>(center.begin(), center.end()), torch::kDouble);
      const double distance = z.norm().item<double>();
      z = distance > 0 ? z / distance : z;
    }
    z = z * std::sqrt(0.99);
  }
  return torch::cat({z, torch::tensor({0.1}, torch::kDouble)});
}

}  // namespace

Reference PerRowAutograd(const Graph& graph, const RowList& rows, v1::Transform transform,
                         const std::vector<float>& center, const WeightShape& shape, const std::vector<float>& weights,
                         double clip) {
  const std::vector<double> in_double(weights.begin(), weights.begin() + shape.count());
  const at::Tensor all = torch::tensor(in_double, torch::kDouble).set_requires_grad(true);
  at::Tensor sum = torch::zeros({shape.count()}, torch::kDouble);
  Reference reference;
  for (int64_t row = 0; row < rows.count(); ++row) {
    const int32_t label = rows.labels[static_cast<size_t>(row)];
    if (label == kUnlabelled) {
      reference.norms.push_back(0);
      continue;
    }
    const at::Tensor first = all.narrow(0, 0, shape.first_layer()).reshape({shape.inputs, shape.width()});
    at::Tensor hidden = torch::zeros({shape.width()}, torch::kDouble);
    for (auto at = static_cast<size_t>(rows.offsets[static_cast<size_t>(row)]);
         at < static_cast<size_t>(rows.offsets[static_cast<size_t>(row) + 1]); ++at) {
      const at::Tensor output = torch::matmul(DenseInput(graph, rows.slots[at], transform, center), first);
      hidden = hidden + rows.weights[at] * (shape.hidden > 0 ? torch::relu(output) : output);
    }
    const at::Tensor second = all.narrow(0, shape.first_layer(), shape.hidden * shape.classes);
    const at::Tensor logits =
        shape.hidden > 0 ? torch::matmul(hidden, second.reshape({shape.hidden, shape.classes})) : hidden;
    const at::Tensor loss = -torch::log_softmax(logits, 0)[label];
    const at::Tensor gradient = torch::autograd::grad({loss}, {all})[0];
    const double norm = gradient.norm().item<double>();
    reference.norms.push_back(norm);
    sum += gradient * (norm > clip ? clip / norm : 1);
  }
  reference.sum.assign(sum.data_ptr<double>(), sum.data_ptr<double>() + sum.numel());
  return reference;
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(square);
}

double Norm(const std::vector<double>& a) { return Distance(a, std::vector<double>(a.size(), 0.0)); }

}  // namespace dpar::testing
