// The inner loops of the CPU engine, in vector instructions. Each is compiled twice, once for any processor and once
// for those with AVX2; the two differ by a few units in the last place, since AVX2 machines fuse multiplications and
// additions.
//
// Matrices are row-major with `width` columns and no padding between rows, so loops over rows touch up to 7 entries
// behind the last one they are about: arrays have kWeightPadding more entries than they need, and vectors of length
// `width` have room for PaddedWidth(width). Reads of entries behind a row are ignored, and writes add 0 to them.
#ifndef DPAR_CORE_TRAIN_KERNELS_H_
#define DPAR_CORE_TRAIN_KERNELS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dpar/v1/training.pb.h"

namespace dpar {

// Entries that a vector needs for loops in steps of 8.
constexpr size_t PaddedWidth(size_t width) { return (width + 7) / 8 * 8; }

// An entry of a list is 32 bits: an index in the low kIndexBits, and above them its value, a whole number, plus the
// list's origin.
inline constexpr int kIndexBits = 14;
inline constexpr int kValueBits = 32 - kIndexBits;
constexpr uint32_t Entry(size_t index, int32_t value, int32_t origin) {
  return static_cast<uint32_t>(value + origin) << kIndexBits | static_cast<uint32_t>(index);
}
constexpr size_t IndexOf(uint32_t entry) { return entry & ((uint32_t{1} << kIndexBits) - 1); }
constexpr int32_t ValueOf(uint32_t entry, int32_t origin) { return static_cast<int32_t>(entry >> kIndexBits) - origin; }

// Four entries. Where a list has fewer, values are 0.
using EntryQuad = std::array<uint32_t, 4>;
// A value that is too large for an entry is held in two, one of which counts this many times.
inline constexpr int32_t kHighUnit = 1 << (kValueBits - 1);

// Lists of entries, of whole quads: list j is quads offsets[2 j]..offsets[2 j + 1] - 1, whose values count once, and
// from there to offsets[2 j + 2] - 1 those whose values count kHighUnit times. (The end of a loop that may be anywhere
// is one that no processor foresees.)
struct EntryLists {
  const int32_t* offsets = nullptr;
  const EntryQuad* quads = nullptr;
  int32_t origin = 0;  // what 0 is held as: 0 where no value is negative
};

// What clipped_residuals takes for each row.
struct ResidualRows {
  const int32_t* labels = nullptr;
  const double* bounds = nullptr;
  const double* scales = nullptr;
  const float* biases = nullptr;
  const float* shifts = nullptr;
};

// And for all of them: a float for each class, and the limit.
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
  // Replaces logits by softmax(logits) - the unit vector of `label`, and what lies behind `count` by 0. The result is
  // not finite if a logit is not.
  void (*residual)(float* logits, size_t count, size_t label);
  // Replaces row i of x, `stride` floats behind the one before, for i in 0..count-1, a multiple of 8, by
  //   scale_i * factor * (softmax(logits) - the unit vector of label_i),
  // where logits = scale_i (x_i + bias_i * model.bias + shift_i * model.mean), and factor is what brings bound_i times
  // the norm of the difference to at most model.limit, or 1. Where the label is -1 or anything is not finite, and
  // behind the last class, by 0.
  // Adds bias_i times the result to 8 sums for each class, those of every eighth row each, and shift_i times it to 8
  // more. `scratch` has room for 8 * stride floats, `sums` for 16 * classes.
  void (*clipped_residuals)(float* x, size_t stride, size_t classes, const ResidualRows& rows, size_t count,
                            const ResidualModel& model, float* scratch, double* sums);
  // For j in 0..count-1, row j of sums = the sum of the values of list j times the rows of matrix that they name. Rows
  // of both have `stride` entries, a multiple of 8. The terms of one sum are added up in two parts at least, every
  // other one in each, and those that count kHighUnit times on their own.
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

// Those for this processor, and those for any.
const Kernels& CpuKernels();
const Kernels& PlainKernels();

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_KERNELS_H_
