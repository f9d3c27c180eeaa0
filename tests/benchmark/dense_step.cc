#include "tests/benchmark/dense_step.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace dpar {
namespace {

constexpr double kClip = 1;
constexpr double kNoise = 1;  // how large it is does not change how long it takes
constexpr double kMomentum = 0.9;
constexpr double kRate = 0.1;
constexpr float kBias = 0.1F;

}  // namespace

struct DenseStep::State {
  GraphView graph;
  at::Tensor first;   // W, (d + 1) x h
  at::Tensor second;  // V, h x c
  at::Tensor first_velocity;
  at::Tensor second_velocity;
  at::Tensor inputs;
  at::Tensor labels;

  // Scales the rows' gradients, sums them, adds noise and moves the weights.
  static void Update(const at::Tensor& gradients, const at::Tensor& scale, at::Tensor& velocity, at::Tensor& weights) {
    at::Tensor sum = at::matmul(scale.unsqueeze(0), gradients.flatten(1)).view(weights.sizes());
    sum.add_(at::empty_like(sum).normal_(0, kNoise * kClip));
    velocity.mul_(kMomentum).add_(sum, 1.0 / static_cast<double>(gradients.size(0)));
    weights.sub_(velocity, kRate);
  }
};

DenseStep::DenseStep(const GraphView& graph, int64_t hidden) : state_(std::make_unique<State>()) {
  at::set_num_threads(1);
  State& state = *state_;
  state.graph = graph;
  state.first = at::empty({graph.sizes.feature_count + 1, hidden}).normal_(0, 0.05);
  state.second = at::empty({hidden, graph.sizes.class_count}).normal_(0, 0.05);
  state.first_velocity = at::zeros_like(state.first);
  state.second_velocity = at::zeros_like(state.second);
}

DenseStep::~DenseStep() = default;

void DenseStep::Load(std::span<const int64_t> slots) {
  State& state = *state_;
  const auto rows = static_cast<int64_t>(slots.size());
  const int64_t width = state.graph.sizes.feature_count + 1;
  state.inputs = at::zeros({rows, width});
  state.labels = at::zeros({rows}, at::kLong);
  auto* inputs = state.inputs.data_ptr<float>();
  auto* labels = state.labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t slot = slots[static_cast<size_t>(i)];
    const auto columns = state.graph.features.row_columns(slot);
    const float entry = columns.empty() ? 0 : std::sqrt(0.99F / static_cast<float>(columns.size()));
    for (const int32_t column : columns) {
      inputs[i * width + column] = entry;
    }
    inputs[i * width + width - 1] = kBias;
    labels[i] = std::max(state.graph.labels[static_cast<size_t>(slot)], 0);
  }
}

void DenseStep::Run() {
  State& state = *state_;
  const at::Tensor first = state.first.detach().requires_grad_(true);
  const at::Tensor before = at::matmul(state.inputs, first);
  const at::Tensor hidden = at::relu(before);
  const at::Tensor logits = at::matmul(hidden, state.second);
  const at::Tensor loss = torch::nn::functional::cross_entropy(
      logits, state.labels, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  const std::vector<at::Tensor> back = torch::autograd::grad({loss}, {before, logits});
  const at::NoGradGuard no_grad;
  const at::Tensor first_gradients = at::bmm(state.inputs.unsqueeze(2), back[0].unsqueeze(1));
  const at::Tensor second_gradients = at::bmm(hidden.unsqueeze(2), back[1].unsqueeze(1));
  const at::Tensor norms = at::hypot(first_gradients.flatten(1).norm(2, 1), second_gradients.flatten(1).norm(2, 1));
  const at::Tensor scale = (kClip / (norms + 1e-6)).clamp_max(1);
  State::Update(first_gradients, scale, state.first_velocity, state.first);
  State::Update(second_gradients, scale, state.second_velocity, state.second);
}

}  // namespace dpar
