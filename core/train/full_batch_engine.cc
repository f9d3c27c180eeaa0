#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <tuple>
#include <vector>

#include "core/pace.h"
#include "core/parallel.h"
#include "core/plan/plan_event.h"
#include "core/train/engine.h"
#include "core/train/kernels.h"

namespace dpar {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kRowsAtOnce = 8;  // of clipped_residuals
constexpr size_t kQuad = std::tuple_size_v<EntryQuad>;
constexpr size_t kRowsPerPiece = kSummationBlock;  // one piece of work, whose residuals are summed together
constexpr size_t kRowsPerPass = 64;  // whose logits stay in the first-level cache until they are residuals
// As many rows' residuals as stay in the second-level cache while columns read them. They are added up in two halves,
// so that no addition has more behind it than SummationError allows.
constexpr size_t kRowsPerChunk = 2 * kSummationBlock;
static_assert(kMaxFullBatchColumns == int64_t{1} << kIndexBits && kRowsPerChunk <= kMaxFullBatchColumns,
              "entries name columns and rows of a chunk");
constexpr double kInputError = 0x1p-18;  // of a row's held input, relative to its norm
// Lower bound on a row's largest entry, so that scales fit a float. Next to the bias input the loss is negligible.
constexpr double kLeastLargest = 0x1p-20;

// Aligned to cache lines, so that a row of 16 is one line.
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

struct Lists {
  std::vector<int32_t> offsets;
  std::vector<EntryQuad> quads;
  int32_t origin = 0;

  [[nodiscard]] EntryLists From(size_t first) const { return {offsets.data() + 2 * first, quads.data(), origin}; }
  [[nodiscard]] int64_t Quads(size_t first, size_t count) const {
    return offsets[2 * (first + count)] - offsets[2 * first];
  }
};

// The unit of a row's values. 18 bits, or 17 and a sign, do for almost all rows; `limit` bounds their error together.
double ScaleOf(std::span<const double> values, int32_t largest_multiple, double limit) {
  double largest = kLeastLargest;
  for (const double value : values) {
    largest = std::fmax(largest, std::fabs(value));
  }
  const double scale = largest / largest_multiple;
  double error = 0;
  for (const double value : values) {
    const double off = scale * std::rint(value / scale) - value;
    error += off * off;
  }
  return std::sqrt(error) <= limit ? scale : 2 * limit / std::sqrt(static_cast<double>(values.size()));
}

size_t PieceCount(size_t count, size_t size) { return (count + size - 1) / size; }
size_t RoundedUp(size_t count, size_t unit) { return PieceCount(count, unit) * unit; }

// Holds the input of a row, z = (scale phi(x) - shift m, 0.1), as z' = s (q - t m, b): whole numbers q = round(scale
// phi(x) / s), and floats t = shift / s and b = 0.1 / s. The residual is multiplied by s before sums are taken, so sums
// consist of products of q, t or b with a float, which are exact in double. Bounds are on the norm of z'.
//
// The error is |z' - z| <= 2^-18 |z|, besides t and b. Where 18 bits for the largest q are not enough, s is smaller and
// large q are held in two parts. So a row's gradient, clipped or not, is within 2^-18 = 3.8e-6 of that with z and the
// same residual, but for roundings to float. (Where z is the difference of parts more than kMaxCancellation times as
// large, their magnitude over that number stands for |z|; such rows are scaled down as well.) Logits are off by at most
// 2^-18 |z| times the norm of a class's weights.
//
// Memory bandwidth limits a step, so lists have 4 bytes an entry, by row and again by column. Columns are placed by
// number of entries, the most first: the weights of the few columns with most entries share the first-level cache. That
// order is not public, and no bit of a result follows from it: a row's entries are added in the order of column
// numbers, a column's in the order of rows.
class FullBatchEngine final : public GradientEngine {
 public:
  FullBatchEngine(const PreparedRows& rows, const WeightShape& shape, int threads, const std::function<bool()>& ask)
      : rows_(rows),
        keep_going_(ask),
        ask_(std::ref(keep_going_)),
        threads_(threads),
        features_(static_cast<size_t>(shape.inputs - 1)),
        classes_(static_cast<size_t>(shape.classes)),
        stride_(PaddedWidth(classes_)),
        row_count_(static_cast<size_t>(rows.rows().count())),
        padded_rows_(RoundedUp(row_count_, kRowsAtOnce)),
        weights_(features_ * stride_),
        residuals_(padded_rows_ * stride_),
        mean_(classes_),
        bounds_(padded_rows_),
        scales_(padded_rows_),
        biases_(padded_rows_),
        shifts_(padded_rows_) {
    labels_.assign(rows.rows().labels.begin(), rows.rows().labels.end());
    labels_.resize(padded_rows_, kUnlabelled);
    Pace pace(ask_);
    PlaceColumns(pace);
    FillByRow(pace);
    FillByColumn(pace);
    DivideColumns();
  }

  absl::Status Sum(std::span<const float> weights, std::span<const int64_t> /*batch*/, double clip,
                   std::span<double> sum) override {
    PlaceWeights(weights);
    const ResidualModel model = {weights.data() + features_ * classes_, mean_.data(), clip * kClipGuard};
    std::vector<PieceSums> of_pieces(PieceCount(row_count_, kRowsPerPiece));
    ParallelFor(static_cast<int64_t>(of_pieces.size()), threads_, [&](int /*worker*/, int64_t piece) {
      of_pieces[static_cast<size_t>(piece)] = MakeResiduals(static_cast<size_t>(piece) * kRowsPerPiece, model);
    });
    sums_.assign(features_ * stride_, 0.0);
    ParallelFor(static_cast<int64_t>(pieces_.size()) - 1, threads_, [&](int /*worker*/, int64_t piece) {
      AddColumns(pieces_[static_cast<size_t>(piece)], pieces_[static_cast<size_t>(piece) + 1]);
    });
    if (keep_going_.stopped()) {
      return absl::CancelledError("training was cancelled");
    }
    PieceSums total = {std::vector<double>(classes_, 0.0), std::vector<double>(classes_, 0.0)};
    for (const PieceSums& one : of_pieces) {
      std::transform(one.bias.begin(), one.bias.end(), total.bias.begin(), total.bias.begin(), std::plus<>());
      std::transform(one.shift.begin(), one.shift.end(), total.shift.begin(), total.shift.begin(), std::plus<>());
    }
    const std::span<const float> center = rows_.transform().center();
    for (size_t j = 0; j < features_; ++j) {
      const double* own = sums_.data() + places_[j] * stride_;
      const double part = center.empty() ? 0 : static_cast<double>(center[j]);
      for (size_t k = 0; k < classes_; ++k) {
        sum[j * classes_ + k] = own[k] - part * total.shift[k];
      }
    }
    std::copy(total.bias.begin(), total.bias.end(), sum.begin() + static_cast<std::ptrdiff_t>(features_ * classes_));
    return absl::OkStatus();
  }

 private:
  // By class: sums of residuals over a piece's rows, times b and times t.
  struct PieceSums {
    std::vector<double> bias;
    std::vector<double> shift;
  };

  void PlaceColumns(Pace& pace) {
    std::vector<int64_t> entries(features_, 0);
    for (size_t row = 0; row < row_count_; ++row) {
      const auto columns = rows_.graph().features.row_columns(static_cast<int64_t>(row));
      if (!pace.GoOn(static_cast<int64_t>(columns.size()))) {
        break;
      }
      for (const int32_t column : columns) {
        ++entries[static_cast<size_t>(column)];
      }
    }
    std::vector<size_t> order(features_);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return entries[a] > entries[b]; });
    places_.resize(features_);
    for (size_t place = 0; place < features_; ++place) {
      places_[order[place]] = place;
    }
  }

  void FillByRow(Pace& pace) {
    const SparseRowsView& features = rows_.graph().features;
    // Reserves at once: a growing array copies all it has.
    by_row_.quads.reserve(2 * (features.values.size() / kQuad + row_count_));
    by_row_.offsets.assign(2 * row_count_ + 1, 0);
    std::vector<float> phi;
    for (size_t row = 0; row < row_count_; ++row) {
      const auto columns = features.row_columns(static_cast<int64_t>(row));
      if (!pace.GoOn(static_cast<int64_t>(columns.size()))) {
        return;
      }
      phi.resize(columns.size());
      TransformEntries(rows_.transform().transform(), features.row_values(static_cast<int64_t>(row)), phi);
      AppendRow(row, columns, phi);
    }
  }

  void AppendRow(size_t row, std::span<const int32_t> columns, std::span<const float> phi) {
    const InputScale& input = rows_.scale(static_cast<int32_t>(row));
    const std::span<const float> center = rows_.transform().center();
    std::vector<double> values(phi.begin(), phi.end());
    for (double& value : values) {
      value *= input.scale;
    }
    const int32_t largest = (1 << kValueBits) - 1 - origin_;
    const double scale =
        ScaleOf(values, largest, kInputError * std::fmax(input.norm, input.magnitude / kMaxCancellation));
    double error = 0;   // |z' - z|^2
    double change = 0;  // |z'|^2 - |z|^2
    // Multiples are below 2^30: a row has at most 2^14 entries, none above its magnitude.
    std::vector<int32_t> low(values.size());
    std::vector<int32_t> high(values.size(), 0);
    for (size_t i = 0; i < values.size(); ++i) {
      const double multiple = std::rint(values[i] / scale);
      const double off = scale * multiple - values[i];
      const double shift =
          center.empty() ? 0 : input.shift * static_cast<double>(center[static_cast<size_t>(columns[i])]);
      error += off * off;
      change += off * (off + 2 * (values[i] - shift));
      low[i] = static_cast<int32_t>(multiple);
      if (std::abs(low[i]) > largest) {
        high[i] = low[i] / kHighUnit;
        low[i] %= kHighUnit;
      }
    }
    AppendList(columns, low);
    by_row_.offsets[2 * row + 1] = static_cast<int32_t>(by_row_.quads.size());
    AppendList(columns, high);
    by_row_.offsets[2 * row + 2] = static_cast<int32_t>(by_row_.quads.size());
    scales_[row] = scale;
    biases_[row] = static_cast<float>(kBiasInput / scale);
    shifts_[row] = static_cast<float>(input.shift / scale);
    // Floats are off by up to 2^-24 of themselves; 2^-23 also covers roundings in double: less than 2^-36 of the
    // squared magnitude, which moves a root above 1/64 of the magnitude by 2^-31 of it.
    const double magnitude = input.magnitude + std::sqrt(error);
    const double norm = std::sqrt(std::fmax(input.norm * input.norm + change, 0));
    bounds_[row] = std::fmax(norm + 0x1p-23 * magnitude, magnitude / kMaxCancellation);
  }

  void AppendList(std::span<const int32_t> columns, std::span<const int32_t> values) {
    size_t count = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) {
        continue;
      }
      const size_t place = places_[static_cast<size_t>(columns[i])];
      if (count % kQuad == 0) {
        by_row_.quads.emplace_back().fill(Entry(place, 0, origin_));  // the rest stays 0 times a weight of this row
      }
      by_row_.quads.back()[count % kQuad] = Entry(place, values[i], origin_);
      ++count;
    }
  }

  // By chunk of rows, then by column, then by row.
  void FillByColumn(Pace& pace) {
    std::vector<int32_t>& offsets = by_column_.offsets;
    offsets.assign(2 * PieceCount(row_count_, kRowsPerChunk) * features_ + 1, 0);
    std::vector<int32_t> entries(offsets.size() - 1, 0);
    ForEachEntry(pace, [&](size_t part, size_t /*row*/, int32_t /*value*/) { ++entries[part]; });
    for (size_t part = 0; part < entries.size(); ++part) {
      offsets[part + 1] = offsets[part] + static_cast<int32_t>(PieceCount(static_cast<size_t>(entries[part]), kQuad));
    }
    EntryQuad nothing;
    nothing.fill(Entry(0, 0, origin_));
    by_column_.quads.resize(static_cast<size_t>(offsets.back()), nothing);
    std::fill(entries.begin(), entries.end(), 0);
    ForEachEntry(pace, [&](size_t part, size_t row, int32_t value) {
      const auto at = static_cast<size_t>(entries[part]++);
      EntryQuad& quad = by_column_.quads[static_cast<size_t>(offsets[part]) + at / kQuad];
      quad[at % kQuad] = Entry(row % kRowsPerChunk, value, origin_);
    });
  }

  // Calls visit(offset of by_column_ where it belongs, row, value) for every entry that is not 0, row by row.
  template <typename Visit>
  void ForEachEntry(Pace& pace, const Visit& visit) const {
    for (size_t row = 0; row < row_count_; ++row) {
      if (!pace.GoOn(int64_t{kQuad} * by_row_.Quads(row, 1))) {
        return;
      }
      for (const size_t high : {size_t{0}, size_t{1}}) {
        const auto first = static_cast<size_t>(by_row_.offsets[2 * row + high]);
        const auto last = static_cast<size_t>(by_row_.offsets[2 * row + high + 1]);
        for (size_t at = first * kQuad; at < last * kQuad; ++at) {
          const uint32_t entry = by_row_.quads[at / kQuad][at % kQuad];
          const int32_t value = ValueOf(entry, origin_);
          if (value != 0) {
            visit(2 * (row / kRowsPerChunk * features_ + IndexOf(entry)) + high, row, value);
          }
        }
      }
    }
  }

  // Gives each thread columns with about the same number of entries.
  void DivideColumns() {
    const size_t lists = PieceCount(row_count_, kRowsPerChunk) * features_;
    const int64_t all = by_column_.offsets.back();
    pieces_ = {0};
    int64_t quads = 0;
    for (size_t place = 0; place < features_; ++place) {
      for (size_t list = place; list < lists; list += features_) {
        quads += by_column_.Quads(list, 1);
      }
      const bool full = quads * threads_ >= all * static_cast<int64_t>(pieces_.size());
      if (place + 1 == features_ || (full && static_cast<int>(pieces_.size()) < threads_)) {
        pieces_.push_back(place + 1);
      }
    }
  }

  void PlaceWeights(std::span<const float> weights) {
    const std::span<const float> center = rows_.transform().center();
    std::vector<double> mean(classes_, 0.0);
    for (size_t j = 0; j < features_; ++j) {
      const float* from = weights.data() + j * classes_;
      std::copy_n(from, classes_, weights_.data() + places_[j] * stride_);
      // By number, not by place: an order that follows the data would differ between neighbours.
      for (size_t k = 0; k < classes_ && !center.empty(); ++k) {
        mean[k] -= static_cast<double>(center[j]) * static_cast<double>(from[k]);
      }
    }
    mean_.assign(mean.begin(), mean.end());
  }

  PieceSums MakeResiduals(size_t first, const ResidualModel& model) {
    Pace pace(ask_);
    std::vector<float> scratch(kRowsAtOnce * stride_);
    std::vector<double> lanes(2 * kRowsAtOnce * classes_, 0.0);
    const size_t last = std::min(first + kRowsPerPiece, row_count_);
    for (size_t row = first; row < last; row += kRowsPerPass) {
      const size_t count = std::min(kRowsPerPass, last - row);
      if (!pace.GoOn(int64_t{kQuad} * by_row_.Quads(row, count))) {
        break;
      }
      float* residuals = residuals_.data() + row * stride_;
      CpuKernels().row_sums(weights_.data(), stride_, by_row_.From(row), count, residuals);
      const ResidualRows facts = {labels_.data() + row, bounds_.data() + row, scales_.data() + row,
                                  biases_.data() + row, shifts_.data() + row};
      CpuKernels().clipped_residuals(residuals, stride_, classes_, facts, RoundedUp(count, kRowsAtOnce), model,
                                     scratch.data(), lanes.data());
    }
    PieceSums sums;
    for (size_t k = 0; k < classes_; ++k) {
      const double* of_class = lanes.data() + 2 * k * kRowsAtOnce;
      sums.bias.push_back(std::accumulate(of_class, of_class + kRowsAtOnce, 0.0));
      sums.shift.push_back(std::accumulate(of_class + kRowsAtOnce, of_class + 2 * kRowsAtOnce, 0.0));
    }
    return sums;
  }

  // The inputs of the columns at places first..last-1 times their rows' residuals.
  void AddColumns(size_t first, size_t last) {
    for (size_t chunk = 0; chunk * kRowsPerChunk < row_count_ && keep_going_(); ++chunk) {
      CpuKernels().column_sums(residuals_.data() + chunk * kRowsPerChunk * stride_, stride_,
                               by_column_.From(chunk * features_ + first), last - first,
                               sums_.data() + first * stride_);
    }
  }

  const PreparedRows& rows_;
  KeepGoing keep_going_;
  const std::function<bool()> ask_;  // keep_going_, as a Pace takes it
  const int threads_;
  const size_t features_;
  const size_t classes_;
  const size_t stride_;  // entries from one row of weights, residuals or sums to the next
  const size_t row_count_;
  const size_t padded_rows_;
  std::vector<size_t> places_;        // by column
  AlignedFloats weights_;             // by place
  AlignedFloats residuals_;           // by row, times s
  std::vector<double> sums_;          // by place
  std::vector<float> mean_;           // -m W
  const int32_t origin_ = kHighUnit;  // of the lists: entries have signs
  Lists by_row_{{}, {}, origin_};     // of places
  Lists by_column_{{}, {}, origin_};  // of rows, counted from their chunk's first
  std::vector<size_t> pieces_;        // the places where they begin, and the end
  std::vector<int32_t> labels_;       // this and below: by row, then padding rows
  std::vector<double> bounds_;
  std::vector<double> scales_;  // s
  std::vector<float> biases_;   // b
  std::vector<float> shifts_;   // t
};

}  // namespace

std::unique_ptr<GradientEngine> MakeFullBatchEngine(const PreparedRows& rows, const WeightShape& shape, int threads,
                                                    const std::function<bool()>& keep_going) {
  return std::make_unique<FullBatchEngine>(rows, shape, std::max(1, threads), keep_going);
}

}  // namespace dpar
