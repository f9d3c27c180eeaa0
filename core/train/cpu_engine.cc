#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "core/fault.h"
#include "core/pace.h"
#include "core/parallel.h"
#include "core/plan/plan_event.h"
#include "core/train/engine.h"
#include "core/train/kernels.h"

namespace dpar {
namespace {

double SquareSum(std::span<const float> values) {
  double square = 0;
  for (const float value : values) {
    square += static_cast<double>(value) * static_cast<double>(value);
  }
  return square;
}

// Brings a gradient's norm to C and its parts' absolute values to kMaxCancellation C at most; 0 if it is not finite.
double ClipScale(double norm, double magnitude, double clip) {
  if (!std::isfinite(norm) || !std::isfinite(magnitude)) {
    return 0;
  }
  const double bound = std::fmax(norm, magnitude / kMaxCancellation);
  return bound > clip * kClipGuard ? clip * kClipGuard / bound : 1;
}

struct StepInput {
  const float* weights = nullptr;
  std::vector<float> center_output;  // m W
  std::vector<float> transposed;     // V^T, c x h
  double clip = 0;
};

// One for each thread.
class RowWorker {
 public:
  RowWorker(const PreparedRows& rows, const WeightShape& shape)
      : rows_(rows),
        shape_(shape),
        kernels_(CpuKernels()),
        width_(static_cast<size_t>(shape.width())),
        classes_(static_cast<size_t>(shape.classes)),
        bias_(static_cast<int32_t>(shape.inputs - 1)),
        logits_(PaddedWidth(classes_)),
        residual_(PaddedWidth(std::max(width_, classes_))),
        center_sum_(PaddedWidth(width_)),
        every_(static_cast<size_t>(std::max(shape.width(), shape.classes))) {
    std::iota(every_.begin(), every_.end(), 0);
  }

  void Begin(double* sum) {
    sum_ = sum;
    std::fill(center_sum_.begin(), center_sum_.end(), 0.0);
  }

  void AddRow(const StepInput& step, int64_t row) {
    const int32_t label = rows_.rows().labels[static_cast<size_t>(row)];
    if (label == kUnlabelled) {
      return;
    }
    LoadRow(row);
    if (shape_.hidden > 0) {
      AddHiddenRow(step, row, static_cast<size_t>(label));
    } else {
      AddLinearRow(step, row, static_cast<size_t>(label));
    }
  }

  // Adds the part of all rows' gradients that is a multiple of the center: -m (sum of shift w r)^T.
  void End() {
    const std::span<const float> center = rows_.transform().center();
    for (size_t j = 0; j < center.size(); ++j) {
      double* out = sum_ + j * width_;
      for (size_t k = 0; k < width_; ++k) {
        out[k] -= static_cast<double>(center[j]) * center_sum_[k];
      }
    }
  }

 private:
  struct Entry {
    std::span<const int32_t> columns;
    size_t phi_at = 0;  // in phi_
    double weight = 0;
    const InputScale* scale = nullptr;
  };

  void LoadRow(int64_t row) {
    const RowList& list = rows_.rows();
    const auto first = static_cast<size_t>(list.offsets[static_cast<size_t>(row)]);
    const auto last = static_cast<size_t>(list.offsets[static_cast<size_t>(row) + 1]);
    entries_.clear();
    phi_.clear();
    for (size_t at = first; at < last; ++at) {
      const int32_t slot = list.slots[at];
      const auto values = rows_.graph().features.row_values(slot);
      const size_t phi_at = phi_.size();
      phi_.resize(phi_at + values.size());
      TransformEntries(rows_.transform().transform(), values, std::span(phi_).subspan(phi_at));
      entries_.push_back({rows_.graph().features.row_columns(slot), phi_at, list.weights[at], &rows_.scale(slot)});
    }
  }

  void AddOutput(const StepInput& step, const Entry& entry, double weight, float* out) const {
    kernels_.gather(step.weights, width_, entry.columns.data(), phi_.data() + entry.phi_at, entry.columns.size(),
                    static_cast<float>(weight * entry.scale->scale), out);
    const float* bias = step.weights + static_cast<size_t>(bias_) * width_;
    const auto bias_factor = static_cast<float>(weight * kBiasInput);
    for (size_t k = 0; k < width_; ++k) {
      out[k] += bias_factor * bias[k];
    }
    if (!step.center_output.empty()) {
      const auto shift = static_cast<float>(weight * entry.scale->shift);
      for (size_t k = 0; k < width_; ++k) {
        out[k] -= shift * step.center_output[k];
      }
    }
  }

  void AddFirstLayer(const Entry& entry, double factor, std::span<const double> vector) {
    for (size_t k = 0; k < width_; ++k) {
      residual_[k] = factor * entry.scale->scale * vector[k];
      center_sum_[k] += factor * entry.scale->shift * vector[k];
      sum_[static_cast<size_t>(bias_) * width_ + k] += factor * kBiasInput * vector[k];
    }
    std::fill(residual_.begin() + static_cast<std::ptrdiff_t>(width_), residual_.end(), 0.0);
    kernels_.scatter(sum_, width_, entry.columns.data(), phi_.data() + entry.phi_at, entry.columns.size(),
                     residual_.data());
  }

  void AddLinearRow(const StepInput& step, int64_t row, size_t label) {
    std::fill(logits_.begin(), logits_.end(), 0.0F);
    for (const Entry& entry : entries_) {
      AddOutput(step, entry, entry.weight, logits_.data());
    }
    kernels_.residual(logits_.data(), classes_, label);
    const double residual_norm = std::sqrt(SquareSum(std::span(logits_).first(classes_)));
    const PreparedRows::Bound& bound = rows_.bound(row);
    const double scale = ClipScale(bound.norm * residual_norm, bound.magnitude * residual_norm, step.clip);
    if (scale == 0) {
      return;
    }
    backward_.assign(logits_.begin(), logits_.begin() + static_cast<std::ptrdiff_t>(classes_));
    for (const Entry& entry : entries_) {
      AddFirstLayer(entry, scale * entry.weight, backward_);
    }
  }

  void AddHiddenRow(const StepInput& step, int64_t row, size_t label) {
    const size_t padded = PaddedWidth(width_);
    hidden_.assign(padded * entries_.size(), 0.0F);
    activation_.assign(padded, 0.0F);
    for (size_t k = 0; k < entries_.size(); ++k) {
      float* hidden = hidden_.data() + k * padded;
      AddOutput(step, entries_[k], 1, hidden);
      const auto weight = static_cast<float>(entries_[k].weight);
      for (size_t j = 0; j < width_; ++j) {
        activation_[j] += weight * std::fmax(hidden[j], 0.0F);
      }
    }
    std::fill(logits_.begin(), logits_.end(), 0.0F);
    const float* output_weights = step.weights + shape_.first_layer();
    kernels_.gather(output_weights, classes_, every_.data(), activation_.data(), width_, 1, logits_.data());
    kernels_.residual(logits_.data(), classes_, label);
    back_.assign(padded, 0.0F);
    kernels_.gather(step.transposed.data(), width_, every_.data(), logits_.data(), classes_, 1, back_.data());
    MakeBackward(padded);
    const double scale = HiddenScale(row, step.clip);
    if (scale == 0) {
      return;
    }
    for (size_t k = 0; k < entries_.size(); ++k) {
      AddFirstLayer(entries_[k], scale, std::span(backward_).subspan(k * width_, width_));
    }
    std::fill(residual_.begin(), residual_.end(), 0.0);
    const double output_scale =
        DPAR_FAULT(kClippingPerLayer, ClipScale(std::sqrt(OutputSquare()), 0, step.clip), scale);
    for (size_t k = 0; k < classes_; ++k) {
      residual_[k] = output_scale * static_cast<double>(logits_[k]);
    }
    kernels_.scatter(sum_ + shape_.first_layer(), classes_, every_.data(), activation_.data(), width_,
                     residual_.data());
  }

  void MakeBackward(size_t padded) {
    backward_.assign(entries_.size() * width_, 0.0);
    for (size_t k = 0; k < entries_.size(); ++k) {
      for (size_t j = 0; j < width_; ++j) {
        const bool active = hidden_[k * padded + j] > 0;
        backward_[k * width_ + j] = active ? entries_[k].weight * static_cast<double>(back_[j]) : 0;
      }
    }
  }

  [[nodiscard]] double OutputSquare() const {
    return SquareSum(activation_) * SquareSum(std::span(logits_).first(classes_));
  }

  [[nodiscard]] double HiddenScale(int64_t row, double clip) const {
    const std::span<const double> products = rows_.products(row);
    double square = 0;
    double magnitude = 0;
    for (size_t k = 0; k < entries_.size(); ++k) {
      const double* a = backward_.data() + k * width_;
      for (size_t l = 0; l <= k; ++l) {
        const double* b = backward_.data() + l * width_;
        const double dot = std::inner_product(a, a + width_, b, 0.0);
        square += (l < k ? 2 : 1) * products[k * (k + 1) / 2 + l] * dot;
        magnitude += l == k ? entries_[k].scale->magnitude * std::sqrt(dot) : 0;
      }
    }
    const double second = DPAR_FAULT(kClippingPerLayer, 0.0, OutputSquare());
    magnitude += std::sqrt(second);
    const double total = std::fmax(square, 0) + second + kSquareGuard * magnitude * magnitude;
    // fmax would hide a product that is not a number.
    return std::isfinite(square) ? ClipScale(std::sqrt(total), magnitude, clip) : 0;
  }

  const PreparedRows& rows_;
  const WeightShape shape_;
  const Kernels& kernels_;
  const size_t width_;
  const size_t classes_;
  const int32_t bias_;  // the row of the bias
  double* sum_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<float> phi_;  // of all entries
  std::vector<float> logits_;
  std::vector<double> residual_;
  std::vector<double> center_sum_;
  std::vector<int32_t> every_;     // 0, 1, 2, ...
  std::vector<float> hidden_;      // z W of every entry
  std::vector<float> activation_;  // a
  std::vector<float> back_;        // V e
  std::vector<double> backward_;   // d of every entry; without a hidden layer e
};

class CpuEngine final : public GradientEngine {
 public:
  CpuEngine(const PreparedRows& rows, const WeightShape& shape, int threads, const std::function<bool()>& keep_going)
      : rows_(rows), shape_(shape), keep_going_(keep_going) {
    for (int i = 0; i < threads; ++i) {
      workers_.push_back({RowWorker(rows, shape), {}});
    }
  }

  absl::Status Sum(std::span<const float> weights, std::span<const int64_t> batch, double clip,
                   std::span<double> sum) override {
    const StepInput step = Prepare(weights, clip);
    const size_t blocks = (batch.size() + kSummationBlock - 1) / kSummationBlock;
    if (blocks <= 1) {
      AddBlock(step, batch, sum.data(), workers_[0].worker);
      return Outcome();
    }
    // One block per thread at a time, added in order: the result does not depend on the number of threads.
    for (size_t first = 0; first < blocks && !keep_going_.stopped(); first += workers_.size()) {
      const size_t count = std::min(workers_.size(), blocks - first);
      ParallelFor(static_cast<int64_t>(count), static_cast<int>(count), [&](int /*worker*/, int64_t i) {
        Worker& worker = workers_[static_cast<size_t>(i)];
        worker.sum.assign(sum.size(), 0.0);
        const size_t start = (first + static_cast<size_t>(i)) * kSummationBlock;
        const size_t size = std::min<size_t>(kSummationBlock, batch.size() - start);
        AddBlock(step, batch.subspan(start, size), worker.sum.data(), worker.worker);
      });
      for (size_t i = 0; i < count; ++i) {
        std::transform(sum.begin(), sum.end(), workers_[i].sum.begin(), sum.begin(), std::plus<>());
      }
    }
    return Outcome();
  }

 private:
  struct Worker {
    RowWorker worker;
    std::vector<double> sum;
  };

  [[nodiscard]] StepInput Prepare(std::span<const float> weights, double clip) const {
    StepInput step;
    step.weights = weights.data();
    step.clip = clip;
    const auto width = static_cast<size_t>(shape_.width());
    const std::span<const float> center = rows_.transform().center();
    if (!center.empty()) {
      std::vector<double> output(width, 0.0);
      for (size_t j = 0; j < center.size(); ++j) {
        for (size_t k = 0; k < width; ++k) {
          output[k] += static_cast<double>(center[j]) * static_cast<double>(weights[j * width + k]);
        }
      }
      step.center_output.assign(output.begin(), output.end());
    }
    if (shape_.hidden > 0) {
      const auto classes = static_cast<size_t>(shape_.classes);
      step.transposed.assign(classes * width + kWeightPadding, 0.0F);
      for (size_t j = 0; j < width; ++j) {
        for (size_t k = 0; k < classes; ++k) {
          step.transposed[k * width + j] = weights[static_cast<size_t>(shape_.first_layer()) + j * classes + k];
        }
      }
    }
    return step;
  }

  void AddBlock(const StepInput& step, std::span<const int64_t> batch, double* sum, RowWorker& worker) {
    Pace pace(ask_);
    worker.Begin(sum);
    for (const int64_t row : batch) {
      if (!pace.GoOn(rows_.entries(row) * shape_.width())) {
        return;
      }
      worker.AddRow(step, row);
    }
    worker.End();
  }

  [[nodiscard]] absl::Status Outcome() const {
    return keep_going_.stopped() ? absl::CancelledError("training was cancelled") : absl::OkStatus();
  }

  const PreparedRows& rows_;
  const WeightShape shape_;
  KeepGoing keep_going_;
  const std::function<bool()> ask_ = std::ref(keep_going_);  // as a Pace takes it
  std::vector<Worker> workers_;
};

}  // namespace

std::unique_ptr<GradientEngine> MakeCpuEngine(const PreparedRows& rows, const WeightShape& shape, int threads,
                                              const std::function<bool()>& keep_going) {
  return std::make_unique<CpuEngine>(rows, shape, std::max(1, threads), keep_going);
}

}  // namespace dpar
