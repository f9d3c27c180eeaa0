#include "core/privacy/fourier.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numbers>
#include <vector>

#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

constexpr size_t kSizes[] = {2, 4, 6, 10, 30, 128, 1000};

// Uniform on (-1, 1).
std::vector<double> RandomValues(size_t size) {
  FixedRandom random(size);
  std::vector<double> values(size);
  for (double& value : values) {
    value = 2 * UniformReal(random) - 1;
  }
  return values;
}

// The sum of x_j e^(-2 pi i j k / size).
std::complex<double> NaiveCoefficient(const std::vector<double>& values, size_t k) {
  const auto size = static_cast<double>(values.size());
  std::complex<double> sum = 0;
  for (size_t j = 0; j < values.size(); ++j) {
    const double turn = static_cast<double>(j * k % values.size()) / size;
    sum += values[j] * std::polar(1.0, -2 * std::numbers::pi * turn);
  }
  return sum;
}

bool IsFastSize(size_t size) {
  if (size == 0 || size % 2 != 0) {
    return false;
  }
  for (const size_t factor : {size_t{2}, size_t{3}, size_t{5}}) {
    while (size % factor == 0) {
      size /= factor;
    }
  }
  return size == 1;
}

TEST(RealTransformTest, ForwardIsTheDiscreteFourierTransform) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const std::vector<double> values = RandomValues(size);
    RealTransform transform(size);
    std::copy(values.begin(), values.end(), transform.values().begin());
    transform.Forward();
    ASSERT_EQ(transform.coefficients().size(), size / 2 + 1);
    const double tolerance = 1e-15 * static_cast<double>(size) + 1e-14;
    for (size_t k = 0; k <= size / 2; ++k) {
      const std::complex<double> expected = NaiveCoefficient(values, k);
      EXPECT_NEAR(transform.coefficients()[k].real(), expected.real(), tolerance) << k;
      EXPECT_NEAR(transform.coefficients()[k].imag(), expected.imag(), tolerance) << k;
    }
  }
}

TEST(RealTransformTest, ForwardThenBackwardMultipliesByTheSize) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const std::vector<double> values = RandomValues(size);
    RealTransform transform(size);
    std::copy(values.begin(), values.end(), transform.values().begin());
    transform.Forward();
    transform.Backward();
    for (size_t j = 0; j < size; ++j) {
      EXPECT_NEAR(transform.values()[j], static_cast<double>(size) * values[j], 1e-14 * static_cast<double>(size)) << j;
    }
  }
}

TEST(RealTransformTest, AProductOfCoefficientsIsACircularConvolution) {
  constexpr size_t kSize = 30;
  const std::vector<double> values = RandomValues(kSize);
  RealTransform transform(kSize);
  std::copy(values.begin(), values.end(), transform.values().begin());
  transform.Forward();
  for (std::complex<double>& coefficient : transform.coefficients()) {
    coefficient *= coefficient;
  }
  transform.Backward();
  for (size_t i = 0; i < kSize; ++i) {
    double expected = 0;
    for (size_t j = 0; j < kSize; ++j) {
      expected += values[j] * values[(i + kSize - j) % kSize];
    }
    EXPECT_NEAR(transform.values()[i] / static_cast<double>(kSize), expected, 1e-13) << i;
  }
}

TEST(RealTransformTest, StartsWithZeros) {
  const RealTransform transform(1000);
  for (const double value : transform.values()) {
    EXPECT_EQ(value, 0);
  }
}

TEST(FastSizeTest, KnowsSmallAndCommonSizes) {
  EXPECT_EQ(RealTransform::FastSize(0), 2U);
  EXPECT_EQ(RealTransform::FastSize(1), 2U);
  EXPECT_EQ(RealTransform::FastSize(2), 2U);
  EXPECT_EQ(RealTransform::FastSize(3), 4U);
  EXPECT_EQ(RealTransform::FastSize(5), 6U);
  EXPECT_EQ(RealTransform::FastSize(7), 8U);
  EXPECT_EQ(RealTransform::FastSize(11), 12U);
  EXPECT_EQ(RealTransform::FastSize(13), 16U);
  EXPECT_EQ(RealTransform::FastSize(27), 30U);
  EXPECT_EQ(RealTransform::FastSize(1000), 1000U);
  EXPECT_EQ(RealTransform::FastSize(1001), 1024U);
  EXPECT_EQ(RealTransform::FastSize((size_t{1} << 23U) + 1), 8'398'080U);  // 2^8 3^8 5
}

TEST(FastSizeTest, IsTheSmallestEvenSizeWithSmallFactors) {
  size_t expected = 6000;
  ASSERT_TRUE(IsFastSize(expected));
  for (size_t size = expected; size > 0; --size) {
    expected = IsFastSize(size) ? size : expected;
    EXPECT_EQ(RealTransform::FastSize(size), expected) << size;
  }
}

}  // namespace
}  // namespace dpar
