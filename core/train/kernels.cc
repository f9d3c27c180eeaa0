#include "core/train/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dpar {
namespace {

// Eight floats or four doubles at any address; GCC picks the instructions.
using Floats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using Doubles [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = double;
using Integers [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = int32_t;
using FourFloats [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = float;
using FourIntegers [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = int32_t;
using FourWords [[gnu::vector_size(16), gnu::aligned(4), gnu::may_alias]] = uint32_t;
constexpr size_t kFloats = 8;
constexpr size_t kDoubles = 4;
constexpr size_t kMaxTile = 4;      // vectors of floats that are kept in registers
constexpr size_t kQuadsAhead = 64;  // of a list that are asked for before they are needed: a kilobyte
// Bounds weights and what moves them, so that nothing overflows whatever the learning rate.
constexpr float kLargestWeight = 1e30F;
constexpr float kLargestGradient = 1e15F;  // of Adam, which squares it

[[gnu::always_inline]] inline const Floats& LoadFloats(const float* at) { return *reinterpret_cast<const Floats*>(at); }
[[gnu::always_inline]] inline Floats& FloatsAt(float* at) { return *reinterpret_cast<Floats*>(at); }
[[gnu::always_inline]] inline Doubles& DoublesAt(double* at) { return *reinterpret_cast<Doubles*>(at); }
[[gnu::always_inline]] inline const Doubles& LoadDoubles(const double* at) {
  return *reinterpret_cast<const Doubles*>(at);
}

// Two rows at a time, so that additions to one accumulator need not wait.
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

// For exponentials: a rounding constant, and ln 2 in two parts.
constexpr float kExpRound = 0x1.8p23F;
constexpr float kLn2High = 0.693359375F;
constexpr float kLn2Low = -2.12194440e-4F;

[[gnu::always_inline]] inline Floats Broadcast(float value) { return Floats{} + value; }

// e^max(x, -87) for x <= 0, to about 2e-7 of itself. x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by its series.
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
  // p - 1 of the label is minus the others' sum: the difference would lose its digits where the model is sure.
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

[[gnu::always_inline]] inline Doubles SquareRoots(Doubles x) {
  return Doubles{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
}

// Scales of four differences, from the total of their exponentials and the sum and squares of those not the label's.
// Without a branch: which rows are clipped cannot be predicted.
[[gnu::always_inline]] inline Doubles ClippedScales(Doubles total, Doubles others, Doubles squares, Doubles bounds,
                                                    Doubles scales, double limit) {
  // Below it, products with the result would no longer be rounded to a part of themselves.
  constexpr double kSmallestScale = 0x1p-100;
  constexpr double kLargest = std::numeric_limits<double>::max();
  const Doubles norm = bounds * SquareRoots(squares + others * others);  // times the total
  const auto clipped = norm > limit * total;
  const Doubles scale = scales * (clipped ? Doubles{} + limit : Doubles{} + 1.0) / (clipped ? norm : total);
  const auto counts = (norm <= kLargest) & (total <= kLargest) & (scale >= kSmallestScale);
  return counts ? scale : Doubles{};
}

[[gnu::always_inline]] inline void Transpose(Floats (&rows)[kFloats]) {
  Floats pairs[kFloats];
  for (size_t i = 0; i < kFloats; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (size_t i = 0; i < 2; ++i) {
    const Floats* half = pairs + i;
    const Floats low_first = __builtin_shufflevector(half[0], half[2], 0, 1, 8, 9, 4, 5, 12, 13);
    const Floats low_second = __builtin_shufflevector(half[0], half[2], 2, 3, 10, 11, 6, 7, 14, 15);
    const Floats high_first = __builtin_shufflevector(half[4], half[6], 0, 1, 8, 9, 4, 5, 12, 13);
    const Floats high_second = __builtin_shufflevector(half[4], half[6], 2, 3, 10, 11, 6, 7, 14, 15);
    rows[2 * i] = __builtin_shufflevector(low_first, high_first, 0, 1, 2, 3, 8, 9, 10, 11);
    rows[2 * i + 1] = __builtin_shufflevector(low_second, high_second, 0, 1, 2, 3, 8, 9, 10, 11);
    rows[2 * i + 4] = __builtin_shufflevector(low_first, high_first, 4, 5, 6, 7, 12, 13, 14, 15);
    rows[2 * i + 5] = __builtin_shufflevector(low_second, high_second, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Transposes eight rows block by block; row i of block k begins at i * row + k * block.
[[gnu::always_inline]] inline void TransposeBlocks(const float* from, size_t from_row, size_t from_block, float* to,
                                                   size_t to_row, size_t to_block, size_t stride) {
  for (size_t k = 0; k < stride; k += kFloats) {
    Floats block[kFloats];
    for (size_t i = 0; i < kFloats; ++i) {
      block[i] = LoadFloats(from + i * from_row + k * from_block);
    }
    Transpose(block);
    for (size_t i = 0; i < kFloats; ++i) {
      FloatsAt(to + i * to_row + k * to_block) = block[i];
    }
  }
}

// Eight rows in the lanes of a vector; few classes would leave most lanes idle.
[[gnu::always_inline]] inline void ClippedResidualsOfEight(float* __restrict x, size_t stride, size_t classes,
                                                           const ResidualRows& rows, size_t first,
                                                           const ResidualModel& model, float* __restrict scratch,
                                                           double* __restrict sums) {
  Integers label;
  std::memcpy(&label, rows.labels + first, sizeof(label));
  const double* scales = rows.scales + first;
  const Floats bias = LoadFloats(rows.biases + first);
  const Floats shift = LoadFloats(rows.shifts + first);
  Floats input_scale;
  for (size_t i = 0; i < kFloats; ++i) {
    input_scale[i] = static_cast<float>(scales[i]);
  }
  Floats largest = Broadcast(-std::numeric_limits<float>::infinity());
  Floats fault = {};  // stays 0 unless a logit is not finite
  TransposeBlocks(x, stride, 1, scratch, kFloats, kFloats, stride);
  for (size_t k = 0; k < classes; ++k) {
    float* at = scratch + k * kFloats;
    const Floats lane = input_scale * (LoadFloats(at) + bias * model.bias[k] + shift * model.mean[k]);
    largest = lane > largest ? lane : largest;
    fault += lane * 0.0F;
    FloatsAt(at) = lane;
  }
  Floats own = {};
  Floats others = {};
  Doubles squares[2] = {};
  for (size_t k = 0; k < classes; ++k) {
    float* at = scratch + k * kFloats;
    const Floats exponential = ExpOfNegatives(LoadFloats(at) - largest);
    const Floats lane = label == static_cast<int32_t>(k) ? Floats{} : exponential;
    own += exponential - lane;
    others += lane;
    FloatsAt(at) = lane;
    squares[0] += DoublesOf(at) * DoublesOf(at);
    squares[1] += DoublesOf(at + kDoubles) * DoublesOf(at + kDoubles);
  }
  const Floats totals = others + own + fault;
  const auto* total = reinterpret_cast<const float*>(&totals);
  const auto* other = reinterpret_cast<const float*>(&others);
  Floats scale;
  for (size_t half = 0; half < 2; ++half) {
    const size_t at = half * kDoubles;
    const Doubles of_half = ClippedScales(DoublesOf(total + at), DoublesOf(other + at), squares[half],
                                          LoadDoubles(rows.bounds + first + at), LoadDoubles(scales + at), model.limit);
    for (size_t i = 0; i < kDoubles; ++i) {
      scale[at + i] = static_cast<float>(of_half[i]);
    }
  }
  scale = label < 0 ? Floats{} : scale;
  const Doubles biases[2] = {DoublesOf(rows.biases + first), DoublesOf(rows.biases + first + kDoubles)};
  const Doubles shifts[2] = {DoublesOf(rows.shifts + first), DoublesOf(rows.shifts + first + kDoubles)};
  for (size_t k = 0; k < classes; ++k) {
    float* at = scratch + k * kFloats;
    const Floats value = label == static_cast<int32_t>(k) ? -others : LoadFloats(at);
    const Floats lane = scale != 0.0F ? value * scale : Floats{};
    FloatsAt(at) = lane;
    double* of_class = sums + 2 * k * kFloats;
    for (size_t half = 0; half < 2; ++half) {
      const Doubles values = DoublesOf(at + half * kDoubles);
      DoublesAt(of_class + half * kDoubles) += biases[half] * values;
      DoublesAt(of_class + kFloats + half * kDoubles) += shifts[half] * values;
    }
  }
  for (size_t k = classes; k < stride; ++k) {
    FloatsAt(scratch + k * kFloats) = Floats{};
  }
  TransposeBlocks(scratch, kFloats, kFloats, x, stride, 1, stride);
}

[[gnu::always_inline]] inline void ClippedResidualsLoop(float* x, size_t stride, size_t classes,
                                                        const ResidualRows& rows, size_t count,
                                                        const ResidualModel& model, float* scratch, double* sums) {
  for (size_t first = 0; first < count; first += kFloats) {
    ClippedResidualsOfEight(x + first * stride, stride, classes, rows, first, model, scratch, sums);
  }
}

[[gnu::always_inline]] inline FourIntegers ValuesOf(const EntryQuad& quad, int32_t origin) {
  return std::bit_cast<FourIntegers>(std::bit_cast<FourWords>(quad) >> kIndexBits) - origin;
}
[[gnu::always_inline]] inline Floats Converted(FourIntegers values, Floats /*like*/) {
  const FourFloats four = __builtin_convertvector(values, FourFloats);
  return __builtin_shufflevector(four, four, 0, 1, 2, 3, 0, 1, 2, 3);
}
[[gnu::always_inline]] inline Doubles Converted(FourIntegers values, Doubles /*like*/) {
  return __builtin_convertvector(values, Doubles);
}

// The value of one entry in all lanes. `zero` is 0, unknown to GCC, which would make two instructions of a known
// shuffle; clang, whose tools read this file, has no other.
template <int kEntry>
[[gnu::always_inline]] inline Floats Spread(Floats x, [[maybe_unused]] int zero) {
#ifdef __clang__
  return __builtin_shufflevector(x, x, kEntry, kEntry, kEntry, kEntry, kEntry, kEntry, kEntry, kEntry);
#else
  return __builtin_shuffle(x, Integers{} + (zero + kEntry));
#endif
}
template <int kEntry>
[[gnu::always_inline]] inline Doubles Spread(Doubles x, int /*zero*/) {
  return __builtin_shufflevector(x, x, kEntry, kEntry, kEntry, kEntry);
}

template <size_t kVectors>
[[gnu::always_inline]] inline void AddRow(Floats value, const float* row, Floats* sum) {
  for (size_t t = 0; t < kVectors; ++t) {
    sum[t] += value * LoadFloats(row + kFloats * t);
  }
}
template <size_t kVectors>
[[gnu::always_inline]] inline void AddRow(Doubles value, const float* row, Doubles* sum) {
  for (size_t t = 0; t < kVectors; ++t) {
    sum[t] += value * DoublesOf(row + kDoubles * t);
  }
}

// In kParts parts, since each addition to a part waits for the one before.
template <size_t kVectors, size_t kParts, typename Vector>
[[gnu::always_inline]] inline void SumQuads(const float* matrix, size_t stride, const EntryLists& lists, int32_t first,
                                            int32_t last, Vector (&sum)[kVectors]) {
  const auto zero = static_cast<int>(stride % kFloats);
  Vector parts[kParts][kVectors] = {};
  for (const EntryQuad* quad = lists.quads + first; quad != lists.quads + last; ++quad) {
    __builtin_prefetch(quad + kQuadsAhead);
    const Vector values = Converted(ValuesOf(*quad, lists.origin), Vector{});
    AddRow<kVectors>(Spread<0>(values, zero), matrix + IndexOf((*quad)[0]) * stride, parts[0]);
    AddRow<kVectors>(Spread<1>(values, zero), matrix + IndexOf((*quad)[1]) * stride, parts[1]);
    AddRow<kVectors>(Spread<2>(values, zero), matrix + IndexOf((*quad)[2]) * stride, parts[2 % kParts]);
    AddRow<kVectors>(Spread<3>(values, zero), matrix + IndexOf((*quad)[3]) * stride, parts[3 % kParts]);
  }
  for (size_t t = 0; t < kVectors; ++t) {
    sum[t] = parts[0][t] + parts[1][t];
    if constexpr (kParts == 4) {
      sum[t] += parts[2][t] + parts[3][t];
    }
  }
}

template <size_t kVectors, size_t kParts, typename Vector>
[[gnu::always_inline]] inline void SumList(const float* matrix, size_t stride, const EntryLists& lists,
                                           const int32_t* offsets, Vector (&sum)[kVectors]) {
  SumQuads<kVectors, kParts>(matrix, stride, lists, offsets[0], offsets[1], sum);
  if (offsets[1] != offsets[2]) {
    Vector high[kVectors];
    SumQuads<kVectors, kParts>(matrix, stride, lists, offsets[1], offsets[2], high);
    for (size_t t = 0; t < kVectors; ++t) {
      sum[t] += high[t] * kHighUnit;
    }
  }
}

template <size_t kVectors>
[[gnu::always_inline]] inline void RowSumsTile(const float* matrix, size_t stride, const EntryLists& lists,
                                               size_t count, float* sums) {
  for (size_t j = 0; j < count; ++j) {
    Floats sum[kVectors];
    SumList<kVectors, 4>(matrix, stride, lists, lists.offsets + 2 * j, sum);
    for (size_t t = 0; t < kVectors; ++t) {
      FloatsAt(sums + j * stride + kFloats * t) = sum[t];
    }
  }
}

template <size_t kVectors>
[[gnu::always_inline]] inline void ColumnSumsTile(const float* matrix, size_t stride, const EntryLists& lists,
                                                  size_t count, double* sums) {
  constexpr size_t kParts = kVectors == 2 ? 4 : 2;  // as many as there are registers for
  for (size_t j = 0; j < count; ++j) {
    const int32_t* offsets = lists.offsets + 2 * j;
    if (offsets[0] == offsets[2]) {
      continue;
    }
    Doubles sum[kVectors];
    SumList<kVectors, kParts>(matrix, stride, lists, offsets, sum);
    for (size_t t = 0; t < kVectors; ++t) {
      DoublesAt(sums + j * stride + kDoubles * t) += sum[t];
    }
  }
}

[[gnu::always_inline]] inline void RowSumsLoop(const float* matrix, size_t stride, const EntryLists& lists,
                                               size_t count, float* sums) {
  size_t first = 0;
  for (; first + 2 * kFloats <= stride; first += 2 * kFloats) {
    RowSumsTile<2>(matrix + first, stride, lists, count, sums + first);
  }
  if (first < stride) {
    RowSumsTile<1>(matrix + first, stride, lists, count, sums + first);
  }
}

[[gnu::always_inline]] inline void ColumnSumsLoop(const float* matrix, size_t stride, const EntryLists& lists,
                                                  size_t count, double* sums) {
  size_t first = 0;
  for (; first + 2 * kFloats <= stride; first += 2 * kFloats) {
    ColumnSumsTile<4>(matrix + first, stride, lists, count, sums + first);
  }
  if (first < stride) {
    ColumnSumsTile<2>(matrix + first, stride, lists, count, sums + first);
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

// The two forms of every loop. An attribute cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define DPAR_FORM_(attributes, form, name)             \
  template <typename... Arguments>                     \
  attributes void form##name(Arguments... arguments) { \
    name##Loop(arguments...);                          \
  }
#define DPAR_FORMS_(attributes, form)                                                                                  \
  DPAR_FORM_(attributes, form, Gather)                                                                                 \
  DPAR_FORM_(attributes, form, Scatter)                                                                                \
  DPAR_FORM_(attributes, form, Residual)                                                                               \
  DPAR_FORM_(attributes, form, ClippedResiduals)                                                                       \
  DPAR_FORM_(attributes, form, RowSums)                                                                                \
  DPAR_FORM_(attributes, form, ColumnSums)                                                                             \
  DPAR_FORM_(attributes, form, MomentumUpdate)                                                                         \
  DPAR_FORM_(attributes, form, AdamUpdate)                                                                             \
  constexpr Kernels k##form##Kernels = {form##Gather,  form##Scatter,    form##Residual,       form##ClippedResiduals, \
                                        form##RowSums, form##ColumnSums, form##MomentumUpdate, form##AdamUpdate};
DPAR_FORMS_(, Plain)
#if defined(__x86_64__)
DPAR_FORMS_([[gnu::target("avx2,fma")]], Avx2)
#endif
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
