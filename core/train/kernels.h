// The inner loops of the CPU engine, in vector instructions. Each is compiled twice, once for any processor and once
// for those with AVX2; the two differ by a few units in the last place, since AVX2 machines fuse multiplications and
// additions.
//
// Matrices are row-major with `width` columns and no padding between rows, so loops over rows touch up to 7 entries
// behind the last one they are about: arrays have kWeightPadding more entries than they need, and vectors of length
// `width` have room for PaddedWidth(width). Reads of entries behind a row are ignored, and writes add 0 to them.
#ifndef DPAR_CORE_TRAIN_KERNELS_H_
#define DPAR_CORE_TRAIN_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "dpar/v1/training.pb.h"

namespace dpar {

// Entries that a vector needs for loops in steps of 8.
constexpr size_t PaddedWidth(size_t width) { return (width + 7) / 8 * 8; }

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
  // The same for 8 rows of logits at once, each `stride` floats, a multiple of 8, behind the one before. A label of -1
  // makes the whole row 0. bounds[i] times the residual's norm bounds row i's gradient; each residual is scaled so that
  // the product is at most `limit`, and 0 if that is not finite. `scratch` has room for 8 * classes floats.
  void (*clipped_residuals)(float* logits, size_t stride, size_t classes, const int32_t* labels, const double* bounds,
                            double limit, float* scratch);
  // For j in 0..count-1, row j of sums += the sum of values[i] * row indices[i] of matrix over offsets[j] <= i <
  // offsets[j + 1], in double. Rows of both have `stride` entries, a multiple of 8. The terms of one row are added up
  // in two halves, every other one in each.
  void (*column_sums)(const float* matrix, size_t stride, const int64_t* offsets, size_t count, const int32_t* indices,
                      const float* values, double* sums);
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
