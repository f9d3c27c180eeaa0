#include "core/train/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dpar {
namespace {

// Eight floats or four doubles at any address. GCC turns arithmetic on them into whatever instructions there are.
using Floats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using Doubles [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = double;
using Integers [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = int32_t;
constexpr size_t kFloats = 8;
constexpr size_t kDoubles = 4;
constexpr size_t kMaxTile = 4;  // vectors of floats that are kept in registers
// Weights and what moves them stay within these, so that nothing overflows whatever the learning rate.
constexpr float kLargestWeight = 1e30F;
constexpr float kLargestGradient = 1e15F;  // of Adam, which squares it

[[gnu::always_inline]] inline const Floats& LoadFloats(const float* at) { return *reinterpret_cast<const Floats*>(at); }
[[gnu::always_inline]] inline Floats& FloatsAt(float* at) { return *reinterpret_cast<Floats*>(at); }
[[gnu::always_inline]] inline Doubles& DoublesAt(double* at) { return *reinterpret_cast<Doubles*>(at); }
[[gnu::always_inline]] inline const Doubles& LoadDoubles(const double* at) {
  return *reinterpret_cast<const Doubles*>(at);
}

// Two rows at a time, so that additions to one accumulator need not wait for each other.
template <size_t kTile>
[[gnu::always_inline]] inline void GatherTile(const float* matrix, size_t width, const int32_t* columns,
                                              const float* values, size_t count, float factor, float* out) {
  Floats even[kTile] = {};
  Floats odd[kTile] = {};
  size_t i = 0;
  for (; i + 1 < count; i += 2) {
    const float* first = matrix + static_cast<size_t>(columns[i]) * width;
    const float* second = matrix + static_cast<size_t>(columns[i + 1]) * width;
    for (size_t t = 0; t < kTile; ++t) {
      even[t] += values[i] * LoadFloats(first + kFloats * t);
      odd[t] += values[i + 1] * LoadFloats(second + kFloats * t);
    }
  }
  if (i < count) {
    const float* last = matrix + static_cast<size_t>(columns[i]) * width;
    for (size_t t = 0; t < kTile; ++t) {
      even[t] += values[i] * LoadFloats(last + kFloats * t);
    }
  }
  for (size_t t = 0; t < kTile; ++t) {
    FloatsAt(out + kFloats * t) += factor * (even[t] + odd[t]);
  }
}

template <size_t kTile>
[[gnu::always_inline]] inline void ScatterTile(double* matrix, size_t width, const int32_t* columns,
                                               const float* values, size_t count, const double* residual) {
  Doubles part[2 * kTile];
  for (size_t t = 0; t < 2 * kTile; ++t) {
    part[t] = LoadDoubles(residual + kDoubles * t);
  }
  for (size_t i = 0; i < count; ++i) {
    double* row = matrix + static_cast<size_t>(columns[i]) * width;
    const auto value = static_cast<double>(values[i]);
    for (size_t t = 0; t < 2 * kTile; ++t) {
      DoublesAt(row + kDoubles * t) += value * part[t];
    }
  }
}

[[gnu::always_inline]] inline void GatherLoop(const float* matrix, size_t width, const int32_t* columns,
                                              const float* values, size_t count, float factor, float* out) {
  for (size_t first = 0; first < width; first += kMaxTile * kFloats) {
    switch ((std::min(width - first, kMaxTile * kFloats) + kFloats - 1) / kFloats) {
      case 1:
        GatherTile<1>(matrix + first, width, columns, values, count, factor, out + first);
        break;
      case 2:
        GatherTile<2>(matrix + first, width, columns, values, count, factor, out + first);
        break;
      case 3:
        GatherTile<3>(matrix + first, width, columns, values, count, factor, out + first);
        break;
      default:
        GatherTile<4>(matrix + first, width, columns, values, count, factor, out + first);
    }
  }
}

[[gnu::always_inline]] inline void ScatterLoop(double* matrix, size_t width, const int32_t* columns,
                                               const float* values, size_t count, const double* residual) {
  for (size_t first = 0; first < width; first += kMaxTile * kFloats) {
    switch ((std::min(width - first, kMaxTile * kFloats) + kFloats - 1) / kFloats) {
      case 1:
        ScatterTile<1>(matrix + first, width, columns, values, count, residual + first);
        break;
      case 2:
        ScatterTile<2>(matrix + first, width, columns, values, count, residual + first);
        break;
      case 3:
        ScatterTile<3>(matrix + first, width, columns, values, count, residual + first);
        break;
      default:
        ScatterTile<4>(matrix + first, width, columns, values, count, residual + first);
    }
  }
}

// For exponentials: ln 2 in two parts, and what rounds to an integer when it is added.
constexpr float kExpRound = 0x1.8p23F;
constexpr float kLn2High = 0.693359375F;
constexpr float kLn2Low = -2.12194440e-4F;

[[gnu::always_inline]] inline Floats Broadcast(float value) { return Floats{} + value; }

// e^x for x <= 0, to about 2e-7 of itself; -87 stands for what is below. x = n ln 2 + r with |r| <= ln 2 / 2, and e^r
// by its series.
[[gnu::always_inline]] inline Floats ExpOfNegatives(Floats x) {
  const Floats clamped = x < Broadcast(-87.0F) ? Broadcast(-87.0F) : x;
  const Floats shifted = clamped * 1.44269504F + kExpRound;
  const Floats n = shifted - kExpRound;
  const Floats r = (clamped - n * kLn2High) - n * kLn2Low;
  Floats series = Broadcast(1.0F / 720);
  series = series * r + 1.0F / 120;
  series = series * r + 1.0F / 24;
  series = series * r + 1.0F / 6;
  series = series * r + 0.5F;
  series = series * r + 1.0F;
  series = series * r + 1.0F;
  return series * std::bit_cast<Floats>((std::bit_cast<Integers>(shifted) << 23) + (127 << 23));
}

[[gnu::always_inline]] inline void ResidualLoop(float* logits, size_t count, size_t label) {
  float largest = logits[0];
  for (size_t k = 1; k < count; ++k) {
    largest = logits[k] > largest ? logits[k] : largest;
  }
  const size_t padded = PaddedWidth(count);
  for (size_t k = count; k < padded; ++k) {
    logits[k] = largest - 200;
  }
  float fault = 0;  // stays 0 unless a logit is not finite
  for (size_t k = 0; k < padded; ++k) {
    fault += logits[k] * 0.0F;
  }
  for (size_t k = 0; k < padded; k += kFloats) {
    FloatsAt(logits + k) = ExpOfNegatives(LoadFloats(logits + k) - largest);
  }
  for (size_t k = count; k < padded; ++k) {
    logits[k] = 0;
  }
  // p - 1 of the label is minus what the others have: a difference would lose its digits where the model is sure.
  const float own = logits[label];
  logits[label] = 0;
  float others = 0;
  for (size_t k = 0; k < padded; ++k) {
    others += logits[k];
  }
  const float scale = 1 / (others + own + fault);
  for (size_t k = 0; k < padded; ++k) {
    logits[k] *= scale;
  }
  logits[label] = -others * scale;
}

// Four floats as doubles. (GCC 12 makes ten instructions of __builtin_convertvector, and one of this.)
[[gnu::always_inline]] inline Doubles DoublesOf(const float* at) {
  return Doubles{static_cast<double>(at[0]), static_cast<double>(at[1]), static_cast<double>(at[2]),
                 static_cast<double>(at[3])};
}

// What each of eight residuals is multiplied by, from its total, the sum and the squares of the others' exponentials.
[[gnu::always_inline]] inline float ClippedScale(double total, double others, double square, double bound,
                                                 double limit) {
  // Below it, products with the scale would no longer be rounded to a part of themselves.
  constexpr double kSmallestScale = 0x1p-100;
  const double norm = bound * std::sqrt(square + others * others) / total;
  const double scale = (norm > limit ? limit / norm : 1) / total;
  // Not a number and infinity fail the first comparison, as they must.
  return norm <= std::numeric_limits<double>::max() && scale >= kSmallestScale ? static_cast<float>(scale) : 0;
}

// Rows stand in the lanes of a vector here: with few classes, most lanes would be idle if classes did.
[[gnu::always_inline]] inline void ClippedResidualsLoop(float* __restrict logits, size_t stride, size_t classes,
                                                        const int32_t* labels, const double* bounds, double limit,
                                                        float* __restrict scratch) {
  Integers label;
  std::memcpy(&label, labels, sizeof(label));
  Floats largest = Broadcast(-std::numeric_limits<float>::infinity());
  Floats fault = {};  // stays 0 unless a logit is not finite
  for (size_t k = 0; k < classes; ++k) {
    const float* at = logits + k;
    const Floats lane = {at[0],          at[stride],     at[2 * stride], at[3 * stride],
                         at[4 * stride], at[5 * stride], at[6 * stride], at[7 * stride]};
    largest = lane > largest ? lane : largest;
    fault += lane * 0.0F;
    FloatsAt(scratch + k * kFloats) = lane;
  }
  Floats own = {};
  Floats others = {};
  Doubles low_squares = {};
  Doubles high_squares = {};
  for (size_t k = 0; k < classes; ++k) {
    float* at = scratch + k * kFloats;
    const Floats exponential = ExpOfNegatives(LoadFloats(at) - largest);
    const Floats lane = label == static_cast<int32_t>(k) ? Floats{} : exponential;
    own += exponential - lane;
    others += lane;
    FloatsAt(at) = lane;
    low_squares += DoublesOf(at) * DoublesOf(at);
    high_squares += DoublesOf(at + kDoubles) * DoublesOf(at + kDoubles);
  }
  Floats scale = {};
  const Floats total = others + own + fault;
  for (size_t i = 0; i < kFloats; ++i) {
    const double square = i < kDoubles ? low_squares[i] : high_squares[i - kDoubles];
    scale[i] = labels[i] < 0 ? 0
                             : ClippedScale(static_cast<double>(total[i]), static_cast<double>(others[i]), square,
                                            bounds[i], limit);
  }
  for (size_t k = 0; k < classes; ++k) {
    const Floats value = label == static_cast<int32_t>(k) ? -others : LoadFloats(scratch + k * kFloats);
    // What is not a number stays so when multiplied by 0.
    const Floats lane = scale != 0.0F ? value * scale : Floats{};
    for (size_t i = 0; i < kFloats; ++i) {
      logits[i * stride + k] = lane[i];
    }
  }
}

template <size_t kTile>
[[gnu::always_inline]] inline void ColumnSumsTile(const float* matrix, size_t stride, const int64_t* offsets,
                                                  size_t count, const int32_t* indices, const float* values,
                                                  double* sums) {
  for (size_t j = 0; j < count; ++j) {
    auto i = static_cast<size_t>(offsets[j]);
    const auto end = static_cast<size_t>(offsets[j + 1]);
    if (i == end) {
      continue;
    }
    Doubles even[2 * kTile] = {};
    Doubles odd[2 * kTile] = {};
    for (; i + 1 < end; i += 2) {
      const float* first = matrix + static_cast<size_t>(indices[i]) * stride;
      const float* second = matrix + static_cast<size_t>(indices[i + 1]) * stride;
      const auto first_value = static_cast<double>(values[i]);
      const auto second_value = static_cast<double>(values[i + 1]);
      for (size_t t = 0; t < 2 * kTile; ++t) {
        even[t] += first_value * DoublesOf(first + kDoubles * t);
        odd[t] += second_value * DoublesOf(second + kDoubles * t);
      }
    }
    if (i < end) {
      const float* last = matrix + static_cast<size_t>(indices[i]) * stride;
      const auto value = static_cast<double>(values[i]);
      for (size_t t = 0; t < 2 * kTile; ++t) {
        even[t] += value * DoublesOf(last + kDoubles * t);
      }
    }
    for (size_t t = 0; t < 2 * kTile; ++t) {
      DoublesAt(sums + j * stride + kDoubles * t) += even[t] + odd[t];
    }
  }
}

[[gnu::always_inline]] inline void ColumnSumsLoop(const float* matrix, size_t stride, const int64_t* offsets,
                                                  size_t count, const int32_t* indices, const float* values,
                                                  double* sums) {
  size_t first = 0;
  for (; first + 2 * kFloats <= stride; first += 2 * kFloats) {
    ColumnSumsTile<2>(matrix + first, stride, offsets, count, indices, values, sums + first);
  }
  if (first < stride) {
    ColumnSumsTile<1>(matrix + first, stride, offsets, count, indices, values, sums + first);
  }
}

[[gnu::always_inline]] inline float Within(float bound, float value) {
  const float below = value < bound ? value : bound;
  return below > -bound ? below : -bound;
}

[[gnu::always_inline]] inline void MomentumUpdateLoop(size_t count, float momentum, double scale, float rate,
                                                      double* __restrict sum, float* __restrict velocity,
                                                      float* __restrict weights) {
  for (size_t i = 0; i < count; ++i) {
    velocity[i] = Within(kLargestWeight, momentum * velocity[i] + static_cast<float>(sum[i] * scale));
    weights[i] = Within(kLargestWeight, weights[i] - rate * velocity[i]);
    sum[i] = 0;
  }
}

[[gnu::always_inline]] inline void AdamUpdateLoop(size_t count, double scale, float rate, float floor,
                                                  double* __restrict sum, float* __restrict first,
                                                  float* __restrict second, float* __restrict weights) {
  for (size_t i = 0; i < count; ++i) {
    const float gradient = Within(kLargestGradient, static_cast<float>(sum[i] * scale));
    first[i] = 0.9F * first[i] + 0.1F * gradient;
    second[i] = 0.999F * second[i] + 0.001F * (gradient * gradient);
    weights[i] = Within(kLargestWeight, weights[i] - rate * first[i] / (std::sqrt(second[i]) + floor));
    sum[i] = 0;
  }
}

// The two forms of every loop. An attribute cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define DPAR_FORMS_(attributes, form)                                                                                  \
  attributes void form##Gather(const float* matrix, size_t width, const int32_t* columns, const float* values,         \
                               size_t count, float factor, float* out) {                                               \
    GatherLoop(matrix, width, columns, values, count, factor, out);                                                    \
  }                                                                                                                    \
  attributes void form##Scatter(double* matrix, size_t width, const int32_t* columns, const float* values,             \
                                size_t count, const double* residual) {                                                \
    ScatterLoop(matrix, width, columns, values, count, residual);                                                      \
  }                                                                                                                    \
  attributes void form##Residual(float* logits, size_t count, size_t label) { ResidualLoop(logits, count, label); }    \
  attributes void form##ClippedResiduals(float* logits, size_t stride, size_t classes, const int32_t* labels,          \
                                         const double* bounds, double limit, float* scratch) {                         \
    ClippedResidualsLoop(logits, stride, classes, labels, bounds, limit, scratch);                                     \
  }                                                                                                                    \
  attributes void form##ColumnSums(const float* matrix, size_t stride, const int64_t* offsets, size_t count,           \
                                   const int32_t* indices, const float* values, double* sums) {                        \
    ColumnSumsLoop(matrix, stride, offsets, count, indices, values, sums);                                             \
  }                                                                                                                    \
  attributes void form##Momentum(size_t count, float momentum, double scale, float rate, double* sum, float* velocity, \
                                 float* weights) {                                                                     \
    MomentumUpdateLoop(count, momentum, scale, rate, sum, velocity, weights);                                          \
  }                                                                                                                    \
  attributes void form##Adam(size_t count, double scale, float rate, float floor, double* sum, float* first,           \
                             float* second, float* weights) {                                                          \
    AdamUpdateLoop(count, scale, rate, floor, sum, first, second, weights);                                            \
  }                                                                                                                    \
  constexpr Kernels k##form##Kernels = {form##Gather,     form##Scatter,  form##Residual, form##ClippedResiduals,      \
                                        form##ColumnSums, form##Momentum, form##Adam};
DPAR_FORMS_(, Plain)
#if defined(__x86_64__)
DPAR_FORMS_([[gnu::target("avx2,fma")]], Avx2)
#endif
#undef DPAR_FORMS_
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

const Kernels& PlainKernels() { return kPlainKernels; }

const Kernels& CpuKernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return kAvx2Kernels;
  }
#endif
  return kPlainKernels;
}

}  // namespace dpar
