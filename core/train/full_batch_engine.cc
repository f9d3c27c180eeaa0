#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "core/parallel.h"
#include "core/plan/plan_event.h"
#include "core/train/engine.h"
#include "core/train/kernels.h"

namespace dpar {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kRowsAtOnce = 8;  // of clipped_residuals
// Of residuals and their sums. Columns go through twice as many, whose residuals stay in the second-level cache: they
// are added up in two halves, so that no addition has more behind it than SummationError allows.
constexpr int64_t kRowsPerChunk = kSummationBlock;
constexpr int64_t kRowsPerColumnChunk = 2 * kSummationBlock;
constexpr int64_t kColumnsPerChunk = 2048;  // whose sums fit into the second-level cache beside a chunk's residuals

// Floats that start at a cache line, so that a row of 16 is one line.
class AlignedFloats {
 public:
  explicit AlignedFloats(size_t count)
      : data_(static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{kCacheLine}))) {
    std::fill_n(data_.get(), count, 0.0F);
  }
  [[nodiscard]] float* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* data) const { ::operator delete[](data, std::align_val_t{kCacheLine}); }
  };
  std::unique_ptr<float[], Free> data_;
};

// Entries in compressed rows or columns: index and value.
struct Entries {
  std::vector<int64_t> offsets;
  std::vector<int32_t> indices;
  std::vector<float> values;
};

int64_t ChunkCount(size_t count, int64_t per_chunk) {
  return (static_cast<int64_t>(count) + per_chunk - 1) / per_chunk;
}

class FullBatchEngine final : public GradientEngine {
 public:
  FullBatchEngine(const PreparedRows& rows, const WeightShape& shape, int threads, std::function<bool()> keep_going)
      : rows_(rows),
        keep_going_(std::move(keep_going)),
        threads_(threads),
        features_(static_cast<size_t>(shape.inputs - 1)),
        classes_(static_cast<size_t>(shape.classes)),
        stride_(PaddedWidth(classes_)),
        row_count_(static_cast<size_t>(rows.rows().count())),
        weights_((features_ + 1) * stride_),
        residuals_((row_count_ + kRowsAtOnce) * stride_) {
    FillByRow();
    FillByColumn();
    labels_.assign(rows.rows().labels.begin(), rows.rows().labels.end());
    labels_.resize(row_count_ + kRowsAtOnce, kUnlabelled);
    bounds_.resize(row_count_ + kRowsAtOnce, 0.0);
    for (size_t row = 0; row < row_count_; ++row) {
      const InputScale& scale = rows.scale(static_cast<int32_t>(row));
      // Inputs are held in floats, which are off by up to 2^-24 of themselves.
      bounds_[row] = std::fmax(scale.norm + 0x1p-23 * scale.magnitude, scale.magnitude / kMaxCancellation);
    }
  }

  absl::Status Sum(std::span<const float> weights, std::span<const int64_t> /*batch*/, double clip,
                   std::span<double> sum) override {
    for (size_t j = 0; j <= features_; ++j) {
      std::copy_n(weights.data() + j * classes_, classes_, weights_.data() + j * stride_);
    }
    const std::vector<float> center_output = CenterOutput();
    const int64_t chunks = ChunkCount(row_count_, kRowsPerChunk);
    std::vector<ChunkSums> sums(static_cast<size_t>(chunks), ChunkSums(stride_));
    ParallelFor(chunks, threads_, [&](int /*worker*/, int64_t chunk) {
      sums[static_cast<size_t>(chunk)] = MakeResiduals(center_output, clip, chunk);
    });
    ChunkSums total(stride_);
    for (const ChunkSums& one : sums) {
      std::transform(one.plain.begin(), one.plain.end(), total.plain.begin(), total.plain.begin(), std::plus<>());
      std::transform(one.shifted.begin(), one.shifted.end(), total.shifted.begin(), total.shifted.begin(),
                     std::plus<>());
    }
    ParallelFor(ChunkCount(features_, kColumnsPerChunk), threads_, [&](int /*worker*/, int64_t chunk) {
      const auto first = static_cast<size_t>(chunk * kColumnsPerChunk);
      AddColumns(first, std::min(first + kColumnsPerChunk, features_), total.shifted, sum);
    });
    for (size_t k = 0; k < classes_; ++k) {
      sum[features_ * classes_ + k] = kBiasInput * total.plain[k];
    }
    return stopped_ ? absl::CancelledError("training was cancelled") : absl::OkStatus();
  }

 private:
  // Sums of residuals over the rows of a chunk: as they are, and times their row's shift.
  struct ChunkSums {
    explicit ChunkSums(size_t width) : plain(width, 0.0), shifted(width, 0.0) {}
    std::vector<double> plain;
    std::vector<double> shifted;
  };

  void FillByRow() {
    const SparseRowsView& features = rows_.graph().features;
    by_row_.offsets.assign(features.offsets.begin(), features.offsets.end());
    by_row_.indices.assign(features.columns.begin(), features.columns.end());
    by_row_.values.resize(features.values.size());
    TransformEntries(rows_.transform().transform(), features.values, by_row_.values);
    ForEachEntry([&](size_t row, size_t at) {
      const double scale = rows_.scale(static_cast<int32_t>(row)).scale;
      by_row_.values[at] = static_cast<float>(scale * static_cast<double>(by_row_.values[at]));
    });
  }

  // By chunk of rows, then by column, then by row: the residuals that a chunk's columns read stay in the cache.
  void FillByColumn() {
    const auto chunks = static_cast<size_t>(ChunkCount(row_count_, kRowsPerColumnChunk));
    by_column_.offsets.assign(chunks * features_ + 1, 0);
    const auto bucket = [&](size_t row, int32_t column) {
      return row / static_cast<size_t>(kRowsPerColumnChunk) * features_ + static_cast<size_t>(column);
    };
    ForEachEntry([&](size_t row, size_t at) { ++by_column_.offsets[bucket(row, by_row_.indices[at]) + 1]; });
    std::partial_sum(by_column_.offsets.begin(), by_column_.offsets.end(), by_column_.offsets.begin());
    by_column_.indices.resize(by_row_.indices.size());
    by_column_.values.resize(by_row_.values.size());
    std::vector<int64_t> next(by_column_.offsets.begin(), by_column_.offsets.end() - 1);
    ForEachEntry([&](size_t row, size_t at) {
      const auto to = static_cast<size_t>(next[bucket(row, by_row_.indices[at])]++);
      by_column_.indices[to] = static_cast<int32_t>(row);
      by_column_.values[to] = by_row_.values[at];
    });
  }

  template <typename Visit>
  void ForEachEntry(const Visit& visit) const {
    for (size_t row = 0; row < row_count_; ++row) {
      for (auto at = static_cast<size_t>(by_row_.offsets[row]); at < static_cast<size_t>(by_row_.offsets[row + 1]);
           ++at) {
        visit(row, at);
      }
    }
  }

  [[nodiscard]] std::vector<float> CenterOutput() const {
    const std::span<const float> center = rows_.transform().center();
    if (center.empty()) {
      return {};
    }
    std::vector<double> output(stride_, 0.0);
    for (size_t j = 0; j < features_; ++j) {
      for (size_t k = 0; k < stride_; ++k) {
        output[k] += static_cast<double>(center[j]) * static_cast<double>(weights_.data()[j * stride_ + k]);
      }
    }
    return std::vector<float>(output.begin(), output.end());
  }

  bool GoOn() {
    if (!stopped_ && !keep_going_()) {
      stopped_ = true;
    }
    return !stopped_;
  }

  // The clipped residuals of a chunk's rows, and their sums.
  ChunkSums MakeResiduals(const std::vector<float>& center_output, double clip, int64_t chunk) {
    ChunkSums sums(stride_);  // made by the thread that fills it: neighbours in memory would slow each other down
    const auto first = static_cast<size_t>(chunk * kRowsPerChunk);
    const size_t last = std::min(first + static_cast<size_t>(kRowsPerChunk), row_count_);
    const float* bias = weights_.data() + features_ * stride_;
    std::vector<float> scratch(kRowsAtOnce * classes_);
    for (size_t row = first; row < last; row += kRowsAtOnce) {
      if ((row - first) % kRowsPerQuestion == 0 && !GoOn()) {
        break;
      }
      const size_t count = std::min(kRowsAtOnce, last - row);
      for (size_t i = row; i < row + count; ++i) {
        float* logits = residuals_.data() + i * stride_;
        const auto shift = static_cast<float>(rows_.scale(static_cast<int32_t>(i)).shift);
        for (size_t k = 0; k < stride_; ++k) {
          logits[k] = static_cast<float>(kBiasInput) * bias[k] - (center_output.empty() ? 0 : shift * center_output[k]);
        }
        const auto at = static_cast<size_t>(by_row_.offsets[i]);
        CpuKernels().gather(weights_.data(), stride_, by_row_.indices.data() + at, by_row_.values.data() + at,
                            static_cast<size_t>(by_row_.offsets[i + 1]) - at, 1, logits);
      }
      CpuKernels().clipped_residuals(residuals_.data() + row * stride_, stride_, classes_, labels_.data() + row,
                                     bounds_.data() + row, clip * kClipGuard, scratch.data());
      for (size_t i = row; i < row + count; ++i) {
        const float* residual = residuals_.data() + i * stride_;
        const double shift = rows_.scale(static_cast<int32_t>(i)).shift;
        for (size_t k = 0; k < classes_; ++k) {
          sums.plain[k] += static_cast<double>(residual[k]);
          sums.shifted[k] += shift * static_cast<double>(residual[k]);
        }
      }
    }
    return sums;
  }

  // Rows first..last-1 of the sum: the inputs of a column times their rows' residuals, chunk by chunk of rows.
  void AddColumns(size_t first, size_t last, const std::vector<double>& shifted, std::span<double> sum) {
    std::vector<double> padded((last - first) * stride_, 0.0);
    const auto chunks = static_cast<size_t>(ChunkCount(row_count_, kRowsPerColumnChunk));
    for (size_t chunk = 0; chunk < chunks && GoOn(); ++chunk) {
      CpuKernels().column_sums(residuals_.data(), stride_, by_column_.offsets.data() + chunk * features_ + first,
                               last - first, by_column_.indices.data(), by_column_.values.data(), padded.data());
    }
    const std::span<const float> center = rows_.transform().center();
    for (size_t j = first; j < last; ++j) {
      const double shift = center.empty() ? 0 : static_cast<double>(center[j]);
      for (size_t k = 0; k < classes_; ++k) {
        sum[j * classes_ + k] = padded[(j - first) * stride_ + k] - shift * shifted[k];
      }
    }
  }

  static constexpr size_t kRowsPerQuestion = 64;

  const PreparedRows& rows_;
  const std::function<bool()> keep_going_;
  const int threads_;
  const size_t features_;
  const size_t classes_;
  const size_t stride_;  // floats from one row of weights or residuals to the next
  const size_t row_count_;
  AlignedFloats weights_;
  AlignedFloats residuals_;
  Entries by_row_;
  Entries by_column_;
  // By row, and for as many rows behind the last as may be handled with it.
  std::vector<int32_t> labels_;
  std::vector<double> bounds_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

std::unique_ptr<GradientEngine> MakeFullBatchEngine(const PreparedRows& rows, const WeightShape& shape, int threads,
                                                    const std::function<bool()>& keep_going) {
  return std::make_unique<FullBatchEngine>(rows, shape, std::max(1, threads), keep_going);
}

}  // namespace dpar
