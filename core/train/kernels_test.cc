#include "core/train/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/random/noise.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

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

// Rows as far apart as the engine has them, with bounds that clip some of them.
TEST_P(KernelsTest, ClippedResidualsEqualResidualsTimesTheirScale) {
  FixedRandom random(4);
  for (const size_t classes : {1U, 2U, 5U, 8U, 15U, 17U}) {
    const size_t stride = PaddedWidth(classes);
    std::vector<float> logits = FloatNormals(8 * stride, random);
    for (size_t i = 0; i < 8; ++i) {
      std::fill(logits.begin() + static_cast<std::ptrdiff_t>(i * stride + classes),
                logits.begin() + static_cast<std::ptrdiff_t>((i + 1) * stride), 0.0F);
    }
    const std::vector<int32_t> labels = {0, -1, static_cast<int32_t>(classes) - 1, 0, 0, 0, 0, 0};
    const std::vector<double> bounds = {1, 1, 1e-3, 10, 1e20, 1, 1, 1};
    std::vector<float> clipped = logits;
    std::vector<float> scratch(8 * classes);
    GetParam()->clipped_residuals(clipped.data(), stride, classes, labels.data(), bounds.data(), 0.3, scratch.data());
    for (size_t i = 0; i < 8; ++i) {
      std::vector<float> expected(logits.begin() + static_cast<std::ptrdiff_t>(i * stride),
                                  logits.begin() + static_cast<std::ptrdiff_t>((i + 1) * stride));
      double norm = 0;
      if (labels[i] >= 0) {
        GetParam()->residual(expected.data(), classes, static_cast<size_t>(labels[i]));
        for (const float value : expected) {
          norm += static_cast<double>(value) * static_cast<double>(value);
        }
        norm = std::sqrt(norm) * bounds[i];
      }
      for (size_t k = 0; k < stride; ++k) {
        const double value = labels[i] < 0 ? 0 : expected[k] * (norm > 0.3 ? 0.3 / norm : 1);
        EXPECT_NEAR(clipped[i * stride + k], value, 2e-6 * std::fabs(value)) << classes << " classes, row " << i;
      }
    }
  }
}

// A scale so small that floats would lose its digits makes the row 0 instead.
TEST_P(KernelsTest, ClippedResidualsDropRowsThatFloatsCannotScale) {
  const std::vector<int32_t> labels(8, 0);
  const std::vector<double> bounds = {1e29, 1e31, 1e38, 1e44, 1e300, 1, 0, std::numeric_limits<double>::infinity()};
  std::vector<float> logits(8 * 8, 0.0F);
  std::vector<float> scratch(16);
  GetParam()->clipped_residuals(logits.data(), 8, 2, labels.data(), bounds.data(), 1e-6, scratch.data());
  for (size_t i = 0; i < 8; ++i) {
    const double norm = std::hypot(static_cast<double>(logits[i * 8]), static_cast<double>(logits[i * 8 + 1]));
    EXPECT_TRUE(norm == 0 || norm * bounds[i] <= 1e-6 * (1 + 0x1p-22)) << bounds[i];
  }
  EXPECT_EQ(logits[4 * 8], 0);
  EXPECT_EQ(logits[7 * 8], 0);
  EXPECT_NE(logits[5 * 8], 0);
  EXPECT_EQ(logits[6 * 8], -0.5F) << "nothing to clip";
}

TEST_P(KernelsTest, ColumnSumsEqualPlainLoops) {
  FixedRandom random(5);
  const std::vector<int64_t> offsets = {2, 3, 3, 7, 9};
  const std::vector<int32_t> indices = {0, 0, 3, 4, 10, 3, 0, 1, 2};
  for (const size_t stride : {8U, 16U, 24U, 40U, 48U}) {
    const std::vector<float> matrix = FloatNormals(11 * stride, random);
    const std::vector<float> values = FloatNormals(indices.size(), random);
    std::vector<double> sums(4 * stride, 0.25);
    GetParam()->column_sums(matrix.data(), stride, offsets.data(), 4, indices.data(), values.data(), sums.data());
    for (size_t j = 0; j < 4; ++j) {
      for (size_t k = 0; k < stride; ++k) {
        double expected = 0.25;
        for (auto i = static_cast<size_t>(offsets[j]); i < static_cast<size_t>(offsets[j + 1]); ++i) {
          expected += static_cast<double>(values[i]) *
                      static_cast<double>(matrix[static_cast<size_t>(indices[i]) * stride + k]);
        }
        EXPECT_NEAR(sums[j * stride + k], expected, 1e-13) << j << ", " << k;
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
