// The CPU engine's inner loops in vector instructions. Each is compiled for any processor and for AVX2; the two differ
// by a few units in the last place, since AVX2 machines fuse multiplications and additions.
//
// Matrices are row-major with `width` columns and no padding between rows, so loops touch up to 7 entries behind the
// last: arrays have kWeightPadding more entries, and vectors of length `width` have space for PaddedWidth(width). Reads
// of entries behind a row are ignored, and writes add 0 to them.
#ifndef DPAR_CORE_TRAIN_KERNELS_H_
#define DPAR_CORE_TRAIN_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "dpar/v1/training.pb.h"

namespace dpar {

constexpr size_t PaddedWidth(size_t width) { return (width + 7) / 8 * 8; }

// An entry of a list is 32 bits: an index in the low kIndexBits, above it a whole number plus the list's origin.
inline constexpr int kIndexBits = 14;
inline constexpr int kValueBits = 32 - kIndexBits;
constexpr uint32_t Entry(size_t index, int32_t value, int32_t origin) {
  return static_cast<uint32_t>(value + origin) << kIndexBits | static_cast<uint32_t>(index);
}
constexpr size_t IndexOf(uint32_t entry) { return entry & ((uint32_t{1} << kIndexBits) - 1); }
constexpr int32_t ValueOf(uint32_t entry, int32_t origin) { return static_cast<int32_t>(entry >> kIndexBits) - origin; }

using EntryQuad = std::array<uint32_t, 4>;  // padded with values 0
// A value too large for an entry is held in two; one of them counts this many times.
inline constexpr int32_t kHighUnit = 1 << (kValueBits - 1);

// Lists of whole quads: in list j, the values of quads offsets[2 j]..offsets[2 j + 1] - 1 count once, those from there
// to offsets[2 j + 2] - 1 kHighUnit times. (Whole quads keep loop ends predictable.)
struct EntryLists {
  const int32_t* offsets = nullptr;
  const EntryQuad* quads = nullptr;
  int32_t origin = 0;  // what 0 is held as: 0 where no value is negative
};

struct ResidualRows {
  const int32_t* labels = nullptr;
  const double* bounds = nullptr;
  const double* scales = nullptr;
  const float* biases = nullptr;
  const float* shifts = nullptr;
};

struct ResidualModel {
  const float* bias = nullptr;
  const float* mean = nullptr;
  double limit = 0;
};

struct Kernels {
  // out += factor * sum over i of values[i] * row columns[i] of matrix.
  void (*gather)(const float* matrix, size_t width, const int32_t* columns, const float* values, size_t count,
                 float factor, float* out);
  // Row columns[i] of matrix += values[i] * residual. Entries of residual from `width` on are 0; values are finite.
  void (*scatter)(double* matrix, size_t width, const int32_t* columns, const float* values, size_t count,
                  const double* residual);
  // logits become softmax(logits) - the unit vector of `label` (not finite if a logit is not), and 0 from `count` on.
  void (*residual)(float* logits, size_t count, size_t label);
  // Replaces row i of x, `stride` floats apart, for i in 0..count-1, a multiple of 8, by
  //   scale_i * factor * (softmax(logits) - the unit vector of label_i),
  // where logits = scale_i (x_i + bias_i * model.bias + shift_i * model.mean), and factor brings bound_i times the norm
  // of the difference to at most model.limit, or is 1. Writes 0 where the label is -1 or anything is not finite, and
  // behind the last class. Adds bias_i times the result to 8 sums for each class, one for every eighth row, and shift_i
  // times it to 8 more. `scratch` holds 8 * stride floats, `sums` 16 * classes.
  void (*clipped_residuals)(float* x, size_t stride, size_t classes, const ResidualRows& rows, size_t count,
                            const ResidualModel& model, float* scratch, double* sums);
  // For j in 0..count-1, row j of sums = the sum of list j's values times the matrix rows that they name; `stride`, a
  // multiple of 8, entries a row. Every other term is added apart, and those that count kHighUnit times on their own.
  void (*row_sums)(const float* matrix, size_t stride, const EntryLists& lists, size_t count, float* sums);
  // The same, but in double and added to what is in `sums`.
  void (*column_sums)(const float* matrix, size_t stride, const EntryLists& lists, size_t count, double* sums);
  // velocity = momentum * velocity + scale * sum; weights -= rate * velocity; sum = 0. Values stay within +-1e30.
  void (*momentum_update)(size_t count, float momentum, double scale, float rate, double* sum, float* velocity,
                          float* weights);
  // Adam: first and second moments with decay 0.9 and 0.999, `rate` already corrected for the start, `floor` likewise.
  void (*adam_update)(size_t count, double scale, float rate, float floor, double* sum, float* first, float* second,
                      float* weights);
};

const Kernels& CpuKernels();
const Kernels& PlainKernels();

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_KERNELS_H_
