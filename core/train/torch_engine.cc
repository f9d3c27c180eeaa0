#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "core/pace.h"
#include "core/plan/plan_event.h"
#include "core/train/engine.h"

namespace dpar {
namespace {

constexpr int64_t kMaxProducts = int64_t{1} << 22;  // of feature entries and weights, held at once

template <typename T>
at::Tensor ToTensor(std::span<const T> values, at::ScalarType type, const at::Device& device) {
  // The copy owns its memory; from_blob alone would not outlive `values`.
  return at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())}, type).clone().to(device);
}

at::Tensor Longs(const std::vector<int64_t>& values, const at::Device& device) {
  return ToTensor<int64_t>(values, at::kLong, device);
}

at::Tensor Reals(const std::vector<double>& values, const at::Device& device) {
  return ToTensor<double>(values, at::kDouble, device);
}

// Live rows of a batch, with the slots they list ("entries") one after another.
struct RowChunk {
  std::vector<int64_t> labels;  // by row
  std::vector<double> norm;     // by row; without a hidden layer
  std::vector<double> magnitude;
  std::vector<int64_t> row;  // by entry
  std::vector<int64_t> slot;
  std::vector<double> weight;
  std::vector<double> scale;
  std::vector<double> shift;
  std::vector<double> entry_magnitude;
  std::vector<int64_t> pair_row;  // by pair of entries of a row; with a hidden layer
  std::vector<int64_t> pair_first;
  std::vector<int64_t> pair_second;
  std::vector<double> pair_product;
  int64_t products = 0;

  [[nodiscard]] bool empty() const { return labels.empty(); }
};

class TorchEngine final : public GradientEngine {
 public:
  TorchEngine(const PreparedRows& rows, const WeightShape& shape, const std::string& device,
              const std::function<bool()>& keep_going)
      : rows_(rows), shape_(shape), device_(device), keep_going_(keep_going) {
    const SparseRowsView& features = rows.graph().features;
    CopyFeatures(features);
    offsets_ = ToTensor<int64_t>(features.offsets, at::kLong, device_);
    if (!rows.transform().center().empty()) {
      center_ = ToTensor<float>(rows.transform().center(), at::kFloat, device_);
    }
  }

  absl::Status Sum(std::span<const float> weights, std::span<const int64_t> batch, double clip,
                   std::span<double> sum) override {
    const at::NoGradGuard no_gradients;
    const at::Tensor all = ToTensor<float>(weights.first(static_cast<size_t>(shape_.count())), at::kFloat, device_);
    const at::Tensor first = all.narrow(0, 0, shape_.first_layer()).reshape({shape_.inputs, shape_.width()});
    const at::Tensor second =
        all.narrow(0, shape_.first_layer(), shape_.hidden * shape_.classes).reshape({shape_.hidden, shape_.classes});
    const auto options = at::TensorOptions().dtype(at::kDouble).device(device_);
    at::Tensor total = at::zeros({shape_.count()}, options);
    for (size_t start = 0; start < batch.size(); start += kSummationBlock) {
      at::Tensor block = at::zeros({shape_.count()}, options);
      const auto rows = batch.subspan(start, std::min<size_t>(kSummationBlock, batch.size() - start));
      for (size_t next = 0; next < rows.size();) {
        if (!keep_going_()) {
          return absl::CancelledError("training was cancelled");
        }
        const RowChunk chunk = TakeChunk(rows, next);
        if (!chunk.empty()) {
          AddChunk(chunk, first, second, clip, block);
        }
      }
      total += block;
    }
    const at::Tensor result = total.to(at::kCPU).contiguous();
    std::copy_n(result.data_ptr<double>(), shape_.count(), sum.begin());
    return absl::OkStatus();
  }

 private:
  void CopyFeatures(const SparseRowsView& features) {
    const auto count = static_cast<int64_t>(features.values.size());
    columns_ = at::empty({count}, at::TensorOptions().dtype(at::kLong).device(device_));
    phi_ = at::empty({count}, at::TensorOptions().dtype(at::kFloat).device(device_));
    const std::function<bool()> ask = std::ref(keep_going_);
    Pace pace(ask);
    std::vector<float> phi;
    for (int64_t first = 0; first < count; first += kEntriesPerQuestion) {
      const int64_t some = std::min(kEntriesPerQuestion, count - first);
      if (!pace.GoOn(some)) {
        return;
      }
      const auto from = static_cast<size_t>(first);
      phi.resize(static_cast<size_t>(some));
      TransformEntries(rows_.transform().transform(), features.values.subspan(from, phi.size()), phi);
      phi_.narrow(0, first, some).copy_(ToTensor<float>(phi, at::kFloat, device_));
      columns_.narrow(0, first, some)
          .copy_(ToTensor<int32_t>(features.columns.subspan(from, phi.size()), at::kInt, device_));
    }
  }

  [[nodiscard]] RowChunk TakeChunk(std::span<const int64_t> batch, size_t& next) const {
    RowChunk chunk;
    while (next < batch.size() && chunk.products < kMaxProducts) {
      const int64_t row = batch[next++];
      const int32_t label = rows_.rows().labels[static_cast<size_t>(row)];
      if (label != kUnlabelled) {
        AddRow(row, label, chunk);
      }
    }
    return chunk;
  }

  void AddRow(int64_t row, int32_t label, RowChunk& chunk) const {
    const RowList& list = rows_.rows();
    const auto number = static_cast<int64_t>(chunk.labels.size());
    const auto first_entry = static_cast<int64_t>(chunk.slot.size());
    chunk.labels.push_back(label);
    for (auto at = static_cast<size_t>(list.offsets[static_cast<size_t>(row)]);
         at < static_cast<size_t>(list.offsets[static_cast<size_t>(row) + 1]); ++at) {
      const InputScale& scale = rows_.scale(list.slots[at]);
      chunk.row.push_back(number);
      chunk.slot.push_back(list.slots[at]);
      chunk.weight.push_back(list.weights[at]);
      chunk.scale.push_back(scale.scale);
      chunk.shift.push_back(scale.shift);
      chunk.entry_magnitude.push_back(scale.magnitude);
      chunk.products += static_cast<int64_t>(rows_.graph().features.row_columns(list.slots[at]).size()) *  //
                        shape_.width();
    }
    if (shape_.hidden == 0) {
      chunk.norm.push_back(rows_.bound(row).norm);
      chunk.magnitude.push_back(rows_.bound(row).magnitude);
      return;
    }
    const auto entries = static_cast<int64_t>(chunk.slot.size()) - first_entry;
    const std::span<const double> products = rows_.products(row);
    for (int64_t k = 0; k < entries; ++k) {
      for (int64_t l = 0; l <= k; ++l) {
        chunk.pair_row.push_back(number);
        chunk.pair_first.push_back(first_entry + k);
        chunk.pair_second.push_back(first_entry + l);
        chunk.pair_product.push_back((l < k ? 2 : 1) * products[static_cast<size_t>(k * (k + 1) / 2 + l)]);
      }
    }
  }

  struct Gathered {
    at::Tensor entry;
    at::Tensor column;
    at::Tensor phi;
    at::Tensor bag_offsets;
  };

  [[nodiscard]] Gathered Gather(const at::Tensor& slots) const {
    const at::Tensor starts = offsets_.index_select(0, slots);
    const at::Tensor lengths = offsets_.index_select(0, slots + 1) - starts;
    const at::Tensor ends = lengths.cumsum(0);
    const at::Tensor bags = ends - lengths;
    Gathered gathered;
    gathered.entry = at::arange(slots.size(0), slots.options()).repeat_interleave(lengths);
    const at::Tensor position =
        at::arange(gathered.entry.size(0), slots.options()) + (starts - bags).index_select(0, gathered.entry);
    gathered.column = columns_.index_select(0, position);
    gathered.phi = phi_.index_select(0, position);
    gathered.bag_offsets = bags;
    return gathered;
  }

  void AddChunk(const RowChunk& chunk, const at::Tensor& first, const at::Tensor& second, double clip,
                at::Tensor& block) const {
    const at::Tensor row = Longs(chunk.row, device_);
    const at::Tensor weight = Reals(chunk.weight, device_).unsqueeze(1);
    const at::Tensor scale = Reals(chunk.scale, device_);
    const at::Tensor shift = Reals(chunk.shift, device_).unsqueeze(1);
    const auto row_count = static_cast<int64_t>(chunk.labels.size());
    const int64_t d = shape_.inputs - 1;
    const Gathered gathered = Gather(Longs(chunk.slot, device_));
    at::Tensor output = std::get<0>(at::embedding_bag(
        first, gathered.column, gathered.bag_offsets, /*scale_grad_by_freq=*/false, /*mode=*/0, /*sparse=*/false,
        gathered.phi * scale.to(at::kFloat).index_select(0, gathered.entry), /*include_last_offset=*/false));
    output = output + kBiasInput * first.narrow(0, d, 1);
    if (center_.defined()) {
      output = output - shift.to(at::kFloat) * at::matmul(center_, first.narrow(0, 0, d)).unsqueeze(0);
    }
    const at::Tensor to_rows = weight.to(at::kFloat);
    const bool hidden = shape_.hidden > 0;
    const at::Tensor activation = at::zeros({row_count, shape_.width()}, output.options())
                                      .index_add_(0, row, to_rows * (hidden ? at::relu(output) : output));
    const at::Tensor logits = hidden ? at::matmul(activation, second) : activation;
    const at::Tensor labels = Longs(chunk.labels, device_);
    at::Tensor residual = at::softmax(logits, 1).to(at::kDouble);
    residual -= (at::arange(shape_.classes, labels.options()).unsqueeze(0) == labels.unsqueeze(1)).to(at::kDouble);
    at::Tensor backward = weight * residual.index_select(0, row);
    if (hidden) {
      const at::Tensor back = at::matmul(residual.to(at::kFloat), second.t()).to(at::kDouble);
      backward = weight * at::where(output > 0, back.index_select(0, row), at::zeros({1}, back.options()));
    }
    const at::Tensor clip_scale =
        hidden ? HiddenScale(chunk, row, backward, activation, residual, clip) : LinearScale(chunk, residual, clip);
    AddGradients(gathered, scale, shift, ScaledOrZero(backward, clip_scale.index_select(0, row)), block);
    if (hidden) {
      block.narrow(0, shape_.first_layer(), shape_.hidden * shape_.classes) +=
          at::matmul(ScaledOrZero(activation.to(at::kDouble), clip_scale).t(),
                     ScaledOrZero(residual, at::ones_like(clip_scale)))
              .reshape({-1});
    }
  }

  // Rows that are not finite have scale 0, and 0 times infinity is not 0.
  static at::Tensor ScaledOrZero(const at::Tensor& vectors, const at::Tensor& scale) {
    return at::nan_to_num(vectors, 0, 0, 0) * scale.unsqueeze(1);
  }

  static at::Tensor ClipScale(const at::Tensor& norm, const at::Tensor& magnitude, double clip) {
    const at::Tensor bound = at::maximum(norm, magnitude / kMaxCancellation);
    const at::Tensor scale = (clip * kClipGuard / bound).clamp_max(1);
    return at::where(at::isfinite(bound), scale, at::zeros_like(scale));
  }

  [[nodiscard]] at::Tensor LinearScale(const RowChunk& chunk, const at::Tensor& residual, double clip) const {
    const at::Tensor residual_norm = residual.square().sum(1).sqrt();
    return ClipScale(Reals(chunk.norm, device_) * residual_norm, Reals(chunk.magnitude, device_) * residual_norm, clip);
  }

  [[nodiscard]] at::Tensor HiddenScale(const RowChunk& chunk, const at::Tensor& row, const at::Tensor& backward,
                                       const at::Tensor& activation, const at::Tensor& residual, double clip) const {
    const auto row_count = static_cast<int64_t>(chunk.labels.size());
    const at::Tensor dots = (backward.index_select(0, Longs(chunk.pair_first, device_)) *
                             backward.index_select(0, Longs(chunk.pair_second, device_)))
                                .sum(1);
    const at::Tensor square =
        at::zeros({row_count}, backward.options())
            .index_add_(0, Longs(chunk.pair_row, device_), dots * Reals(chunk.pair_product, device_));
    const at::Tensor second = activation.to(at::kDouble).square().sum(1) * residual.square().sum(1);
    const at::Tensor magnitude =
        second.sqrt().index_add(0, row, Reals(chunk.entry_magnitude, device_) * backward.square().sum(1).sqrt());
    const at::Tensor total = square.clamp_min(0) + second + kSquareGuard * magnitude.square();
    return ClipScale(total.sqrt(), magnitude, clip);
  }

  void AddGradients(const Gathered& gathered, const at::Tensor& scale, const at::Tensor& shift,
                    const at::Tensor& residual, at::Tensor& block) const {
    const int64_t d = shape_.inputs - 1;
    at::Tensor layer = block.narrow(0, 0, shape_.first_layer()).reshape({shape_.inputs, shape_.width()});
    const at::Tensor factor = gathered.phi.to(at::kDouble) * scale.index_select(0, gathered.entry);
    layer.index_add_(0, gathered.column, factor.unsqueeze(1) * residual.index_select(0, gathered.entry));
    layer.narrow(0, d, 1) += kBiasInput * residual.sum(0, /*keepdim=*/true);
    if (center_.defined()) {
      layer.narrow(0, 0, d) -=
          at::matmul(center_.to(at::kDouble).unsqueeze(1), (shift * residual).sum(0, /*keepdim=*/true));
    }
  }

  const PreparedRows& rows_;
  const WeightShape shape_;
  const at::Device device_;
  KeepGoing keep_going_;
  at::Tensor columns_;
  at::Tensor phi_;
  at::Tensor offsets_;
  at::Tensor center_;
};

}  // namespace

std::unique_ptr<GradientEngine> MakeTorchEngine(const PreparedRows& rows, const WeightShape& shape,
                                                const std::string& device, const std::function<bool()>& keep_going) {
  return std::make_unique<TorchEngine>(rows, shape, device, keep_going);
}

}  // namespace dpar
