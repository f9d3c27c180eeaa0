#include "core/train/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/random/testing/plain_noise.h"

namespace dpar {
namespace {

using ::dpar::testing::FillGaussian;
using ::dpar::testing::FixedRandom;

constexpr size_t kPadding = 8;

// The form for this processor and the one for any.
class KernelsTest : public ::testing::TestWithParam<const Kernels*> {};
INSTANTIATE_TEST_SUITE_P(Forms, KernelsTest, ::testing::Values(&CpuKernels(), &PlainKernels()));

std::vector<double> Normals(size_t count, FixedRandom& random) {
  std::vector<double> values(count);
  FillGaussian(random, values);
  return values;
}

std::vector<float> FloatNormals(size_t count, FixedRandom& random) {
  const std::vector<double> values = Normals(count, random);
  return std::vector<float>(values.begin(), values.end());
}

TEST_P(KernelsTest, GatherAndScatterEqualPlainLoopsAtEveryWidth) {
  FixedRandom random(1);
  constexpr size_t kRows = 11;
  const std::vector<int32_t> columns = {0, 3, 4, 10, 3};
  for (size_t width = 1; width <= 80; ++width) {
    const std::vector<float> matrix = FloatNormals(kRows * width + kPadding, random);
    const std::vector<float> values = FloatNormals(columns.size(), random);
    for (size_t count = 0; count <= columns.size(); ++count) {
      std::vector<float> out(PaddedWidth(width), 0.5F);
      GetParam()->gather(matrix.data(), width, columns.data(), values.data(), count, 2, out.data());
      std::vector<double> residual(PaddedWidth(width), 0.0);
      std::vector<double> sum(kRows * width + kPadding, 1.0);
      for (size_t k = 0; k < width; ++k) {
        residual[k] = 0.25 * static_cast<double>(k + 1);
      }
      GetParam()->scatter(sum.data(), width, columns.data(), values.data(), count, residual.data());
      for (size_t k = 0; k < width; ++k) {
        double expected = 0.5;
        for (size_t i = 0; i < count; ++i) {
          expected += 2.0 * values[i] * matrix[static_cast<size_t>(columns[i]) * width + k];
        }
        EXPECT_NEAR(out[k], expected, 2e-5) << width;
      }
      std::vector<double> expected(kRows * width + kPadding, 1.0);
      for (size_t i = 0; i < count; ++i) {
        for (size_t k = 0; k < width; ++k) {
          expected[static_cast<size_t>(columns[i]) * width + k] += static_cast<double>(values[i]) * residual[k];
        }
      }
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(sum[i], expected[i], 1e-13) << width << " at " << i;
      }
    }
  }
}

TEST_P(KernelsTest, ResidualIsSoftmaxMinusTheLabel) {
  FixedRandom random(2);
  for (size_t count = 1; count <= 40; ++count) {
    for (const double scale : {0.0, 1.0, 5.0}) {
      std::vector<float> logits = FloatNormals(PaddedWidth(count), random);
      double total = 0;
      double largest = -1e9;
      for (size_t k = 0; k < count; ++k) {
        logits[k] = static_cast<float>(scale) * logits[k];
        largest = std::fmax(largest, logits[k]);
      }
      for (size_t k = 0; k < count; ++k) {
        total += std::exp(logits[k] - largest);
      }
      std::vector<float> residual = logits;
      const size_t label = count / 2;
      GetParam()->residual(residual.data(), count, label);
      double others = 0;
      for (size_t k = 0; k < count; ++k) {
        const double probability = std::exp(logits[k] - largest) / total;
        others += k == label ? 0 : probability;
        if (k != label) {
          EXPECT_NEAR(residual[k], probability, 4e-6 * probability) << count;
        }
      }
      EXPECT_NEAR(residual[label], -others, 4e-6 * others) << "also where the model is sure";
      for (size_t k = count; k < residual.size(); ++k) {
        EXPECT_EQ(residual[k], 0);
      }
    }
  }
}

TEST_P(KernelsTest, ResidualTakesAnyFiniteLogitsAndShowsOthers) {
  std::vector<float> logits = {3e38F, -3e38F, 0, 0, 0, 0, 0, 0};
  GetParam()->residual(logits.data(), 3, 1);
  EXPECT_EQ(logits[0], 1);
  EXPECT_EQ(logits[1], -1);
  EXPECT_NEAR(logits[2], 0, 1e-37);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    logits = {1, bad, 0, 0, 0, 0, 0, 0};
    GetParam()->residual(logits.data(), 3, 0);
    EXPECT_FALSE(std::isfinite(logits[0] + logits[1] + logits[2])) << bad;
  }
}

// Sixteen rows of x, as far apart as the engine has them, with what clipped_residuals takes for each.
struct Sixteen {
  explicit Sixteen(size_t class_count) : classes(class_count) {}

  static constexpr size_t kRows = 16;
  size_t classes;
  size_t stride = PaddedWidth(classes);
  std::vector<float> x = std::vector<float>(kRows * stride, 0.0F);
  std::vector<int32_t> labels = std::vector<int32_t>(kRows, 0);
  std::vector<double> bounds = std::vector<double>(kRows, 1.0);
  std::vector<double> scales = std::vector<double>(kRows, 1.0);
  std::vector<float> biases = std::vector<float>(kRows, 0.0F);
  std::vector<float> shifts = std::vector<float>(kRows, 0.0F);
  std::vector<float> bias = std::vector<float>(classes, 0.0F);
  std::vector<float> mean = std::vector<float>(classes, 0.0F);
  std::vector<double> sums = std::vector<double>(16 * classes, 0.0);

  void Run(const Kernels& kernels, double limit) {
    std::vector<float> scratch(8 * stride);
    kernels.clipped_residuals(x.data(), stride, classes,
                              {labels.data(), bounds.data(), scales.data(), biases.data(), shifts.data()}, kRows,
                              {bias.data(), mean.data(), limit}, scratch.data(), sums.data());
  }
};

TEST_P(KernelsTest, ClippedResidualsEqualResidualsTimesTheirScales) {
  FixedRandom random(4);
  for (const size_t classes : {1U, 2U, 5U, 8U, 15U, 17U}) {
    Sixteen rows(classes);
    rows.labels = {0, -1, static_cast<int32_t>(classes) - 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    rows.bounds = {1, 1, 1e-3, 10, 1e20, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
    rows.scales = Normals(Sixteen::kRows, random);
    std::transform(rows.scales.begin(), rows.scales.end(), rows.scales.begin(), [](double x) { return std::fabs(x); });
    rows.biases = FloatNormals(Sixteen::kRows, random);
    rows.shifts = FloatNormals(Sixteen::kRows, random);
    rows.bias = FloatNormals(classes, random);
    rows.mean = FloatNormals(classes, random);
    rows.x = FloatNormals(Sixteen::kRows * rows.stride, random);
    const std::vector<float> x = rows.x;
    rows.Run(*GetParam(), 0.3);
    std::vector<double> bias_sums(classes, 0.0);
    std::vector<double> shift_sums(classes, 0.0);
    for (size_t i = 0; i < Sixteen::kRows; ++i) {
      std::vector<float> expected(rows.stride, 0.0F);
      double norm = 0;
      if (rows.labels[i] >= 0) {
        for (size_t k = 0; k < classes; ++k) {
          const double logit = static_cast<double>(x[i * rows.stride + k]) +
                               static_cast<double>(rows.biases[i]) * static_cast<double>(rows.bias[k]) +
                               static_cast<double>(rows.shifts[i]) * static_cast<double>(rows.mean[k]);
          expected[k] = static_cast<float>(rows.scales[i] * logit);
        }
        GetParam()->residual(expected.data(), classes, static_cast<size_t>(rows.labels[i]));
        for (const float value : expected) {
          norm += static_cast<double>(value) * static_cast<double>(value);
        }
        norm = std::sqrt(norm) * rows.bounds[i];
      }
      for (size_t k = 0; k < classes; ++k) {
        const double value = rows.scales[i] * static_cast<double>(expected[k]) * (norm > 0.3 ? 0.3 / norm : 1);
        const auto got = static_cast<double>(rows.x[i * rows.stride + k]);
        EXPECT_NEAR(got, value, 1e-5 * std::fabs(value) + 1e-30) << classes << " classes, row " << i;
        bias_sums[k] += static_cast<double>(rows.biases[i]) * got;
        shift_sums[k] += static_cast<double>(rows.shifts[i]) * got;
      }
      for (size_t k = classes; k < rows.stride; ++k) {
        EXPECT_EQ(rows.x[i * rows.stride + k], 0) << "behind the last class";
      }
    }
    for (size_t k = 0; k < classes; ++k) {
      const double* lanes = rows.sums.data() + 16 * k;
      EXPECT_NEAR(std::accumulate(lanes, lanes + 8, 0.0), bias_sums[k], 1e-13);
      EXPECT_NEAR(std::accumulate(lanes + 8, lanes + 16, 0.0), shift_sums[k], 1e-13);
    }
  }
}

// A scale so small that floats would lose its digits makes the row 0 instead.
TEST_P(KernelsTest, ClippedResidualsDropRowsThatFloatsCannotScale) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Sixteen rows(2);
  rows.bounds = {1e29, 1e31, 1e38, 1e44, 1e300, 1, 0, kInfinity, 1e29, 1e38, 1e300, 1, 1, 1, 1, 1};
  rows.scales[8] = 0x1p-35;
  rows.scales[9] = 1e34;
  rows.scales[10] = 1e34;
  rows.Run(*GetParam(), 1e-6);
  for (size_t i = 0; i < Sixteen::kRows; ++i) {
    const double norm = std::hypot(static_cast<double>(rows.x[i * 8]), static_cast<double>(rows.x[i * 8 + 1]));
    EXPECT_TRUE(norm == 0 || norm / rows.scales[i] * rows.bounds[i] <= 1e-6 * (1 + 0x1p-22)) << rows.bounds[i];
  }
  EXPECT_EQ(rows.x[size_t{4} * 8], 0);
  EXPECT_EQ(rows.x[size_t{7} * 8], 0);
  EXPECT_NE(rows.x[size_t{5} * 8], 0);
  EXPECT_EQ(rows.x[size_t{6} * 8], -0.5F) << "nothing to clip";
  EXPECT_EQ(rows.x[size_t{8} * 8], 0);
  EXPECT_NE(rows.x[size_t{9} * 8], 0) << "the scale makes up for the bound";
  EXPECT_EQ(rows.x[size_t{10} * 8], 0);
}

TEST_P(KernelsTest, ClippedResidualsOfLogitsThatAreNotFiniteAreZero) {
  Sixteen rows(3);
  rows.x[size_t{0} * 8 + 1] = std::numeric_limits<float>::quiet_NaN();
  rows.x[size_t{1} * 8 + 1] = std::numeric_limits<float>::infinity();
  rows.x[size_t{2} * 8 + 1] = -std::numeric_limits<float>::infinity();
  rows.biases.assign(Sixteen::kRows, 1.0F);
  rows.Run(*GetParam(), std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < Sixteen::kRows; ++i) {
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(rows.x[i * 8 + k] == 0, i < 3) << i;
    }
  }
  for (const double sum : rows.sums) {
    EXPECT_TRUE(std::isfinite(sum));
  }
}

TEST_P(KernelsTest, RowSumsAndColumnSumsEqualPlainLoops) {
  constexpr size_t kLists = 5;
  constexpr size_t kLastIndex = (size_t{1} << kIndexBits) - 1;
  FixedRandom random(5);
  // One list of one quad, an empty one, one in both halves, one that is high alone, one of four.
  const std::vector<int32_t> offsets = {1, 2, 2, 2, 2, 4, 5, 5, 6, 10, 10};
  const std::vector<size_t> indices = {9, 9, 9, 9, 0, 3, 4, 10, 3, 0, 1, 2, 5, 6,          7, 8, 9, 10, 0, 0,
                                       1, 2, 2, 2, 5, 1, 0, 3,  7, 7, 8, 8, 4, kLastIndex, 1, 0, 6, 6,  6, 6};
  for (const int32_t origin : {0, kHighUnit}) {
    const int32_t largest = (1 << kValueBits) - 1 - origin;
    const std::vector<int32_t> values = {1, 1, 1,   1,       largest, -origin, 3, origin > 0 ? -1 : 1,
                                         0, 7, 100, 2500,    1,       2,       3, 4,
                                         5, 6, 0,   0,       9,       8,       0, 0,
                                         1, 1, 1,   1,       -1,      2,       3, 4,
                                         5, 6, 7,   largest, 0,       0,       0, 1};
    std::vector<EntryQuad> quads(indices.size() / 4);
    for (size_t i = 0; i < indices.size(); ++i) {
      const int32_t value = origin > 0 ? values[i] : std::abs(values[i]);
      quads[i / 4][i % 4] = Entry(indices[i], value, origin);
      EXPECT_EQ(IndexOf(quads[i / 4][i % 4]), indices[i]);
      EXPECT_EQ(ValueOf(quads[i / 4][i % 4], origin), value);
    }
    const EntryLists lists = {offsets.data(), quads.data(), origin};
    for (const size_t stride : {8U, 16U, 24U, 40U, 48U}) {
      const std::vector<float> matrix = FloatNormals((kLastIndex + 1) * stride, random);
      std::vector<double> columns(kLists * stride, 0.25);
      std::vector<float> rows(kLists * stride, 0.25F);
      GetParam()->column_sums(matrix.data(), stride, lists, kLists, columns.data());
      GetParam()->row_sums(matrix.data(), stride, lists, kLists, rows.data());
      for (size_t j = 0; j < kLists; ++j) {
        for (size_t k = 0; k < stride; ++k) {
          double expected = 0;
          double magnitude = 0;
          for (size_t half = 2 * j; half < 2 * j + 2; ++half) {
            for (auto i = 4 * static_cast<size_t>(offsets[half]); i < 4 * static_cast<size_t>(offsets[half + 1]); ++i) {
              const uint32_t entry = quads[i / 4][i % 4];
              const double term = static_cast<double>(ValueOf(entry, origin)) * (half % 2 == 0 ? 1 : kHighUnit) *
                                  static_cast<double>(matrix[IndexOf(entry) * stride + k]);
              expected += term;
              magnitude += std::fabs(term);
            }
          }
          EXPECT_NEAR(columns[j * stride + k], 0.25 + expected, 1e-14 * magnitude + 1e-15) << j << ", " << k;
          EXPECT_NEAR(static_cast<double>(rows[j * stride + k]), expected, 1e-6 * magnitude) << j << ", " << k;
        }
      }
    }
  }
}

TEST_P(KernelsTest, MomentumUpdateFollowsItsFormulaAndStaysFinite) {
  std::vector<double> sum = {2, -4, 1e300, 0, 0, 0, 0, 0, 1};
  std::vector<float> velocity = {1, 0, 0, 1e30F, 0, 0, 0, 0, 2};
  std::vector<float> weights = {1, 1, 1, -1e30F, 0, 0, 0, 0, 3};
  GetParam()->momentum_update(9, 0.5F, 0.25, 2, sum.data(), velocity.data(), weights.data());
  EXPECT_EQ(velocity[0], 1);
  EXPECT_EQ(weights[0], -1);
  EXPECT_EQ(velocity[1], -1);
  EXPECT_EQ(weights[1], 3);
  EXPECT_EQ(velocity[2], 1e30F);
  EXPECT_EQ(weights[2], -1e30F);
  EXPECT_EQ(weights[3], -1e30F);
  EXPECT_EQ(velocity[8], 1.25F);
  EXPECT_EQ(weights[8], 0.5F);
  EXPECT_THAT(sum, ::testing::Each(0.0));
}

TEST_P(KernelsTest, AdamUpdateFollowsItsFormula) {
  std::vector<double> sum = {2, -4, 0};
  std::vector<float> first = {0, 1, 0};
  std::vector<float> second = {0, 4, 0};
  std::vector<float> weights = {0, 0, 5};
  GetParam()->adam_update(3, 0.5, 0.1F, 1e-8F, sum.data(), first.data(), second.data(), weights.data());
  EXPECT_FLOAT_EQ(first[0], 0.1F);
  EXPECT_FLOAT_EQ(second[0], 0.001F);
  EXPECT_FLOAT_EQ(weights[0], -0.1F * 0.1F / (std::sqrt(0.001F) + 1e-8F));
  EXPECT_FLOAT_EQ(first[1], 0.9F - 0.2F);
  EXPECT_FLOAT_EQ(second[1], 0.999F * 4 + 0.001F * 4);
  EXPECT_FLOAT_EQ(weights[1], -0.1F * 0.7F / 2);
  EXPECT_EQ(weights[2], 5);
  EXPECT_THAT(sum, ::testing::Each(0.0));
}

}  // namespace
}  // namespace dpar
