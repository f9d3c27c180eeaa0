#include "core/infer/input_rows.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();
constexpr double kTolerance = 1e-12;

std::vector<float> Transformed(v1::Transform transform, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  TransformEntries(transform, values, out);
  return out;
}

struct Row {
  std::vector<int32_t> columns;
  std::vector<float> phi;
};

// |(scale phi - shift m, 0.1)|, in more precision than the code under test has.
long double ExactNorm(const Row& row, const std::vector<float>& center, const InputScale& input) {
  std::vector<long double> z(center.empty() ? 0 : center.size(), 0);
  for (size_t i = 0; i < center.size(); ++i) {
    z[i] = -static_cast<long double>(input.shift) * static_cast<long double>(center[i]);
  }
  for (size_t i = 0; i < row.columns.size(); ++i) {
    const auto column = static_cast<size_t>(row.columns[i]);
    z.resize(std::max(z.size(), column + 1), 0);
    z[column] += static_cast<long double>(input.scale) * static_cast<long double>(row.phi[i]);
  }
  long double square = static_cast<long double>(kBiasInput) * static_cast<long double>(kBiasInput);
  for (const long double entry : z) {
    square += entry * entry;
  }
  return std::sqrt(square);
}

void ExpectScale(const InputScale& input, double scale, double shift, double norm, double magnitude) {
  EXPECT_NEAR(input.scale, scale, kTolerance);
  EXPECT_NEAR(input.shift, shift, kTolerance);
  EXPECT_NEAR(input.norm, norm, kTolerance);
  EXPECT_NEAR(input.magnitude, magnitude, kTolerance);
}

TEST(TransformEntriesTest, TakesSquareRootsOfPositiveEntriesUnderSqrtUnit) {
  EXPECT_THAT(Transformed(v1::SQRT_UNIT, {4, -4, kNan, kInfinity, -kInfinity, 9, 0}),
              ElementsAre(2, -2, 0, 0, 0, 3, 0));
  EXPECT_THAT(Transformed(v1::SQRT_UNIT, {kLargest, kSmallest}),
              ElementsAre(std::sqrt(kLargest), std::sqrt(kSmallest)));
}

TEST(TransformEntriesTest, KeepsEveryFiniteEntryUnderRawAndUnit) {
  for (const v1::Transform transform : {v1::RAW, v1::UNIT}) {
    EXPECT_THAT(Transformed(transform, {4, -4, kNan, kInfinity, -kInfinity, kLargest, -kLargest, kSmallest, 0}),
                ElementsAre(4, -4, 0, 0, 0, kLargest, -kLargest, kSmallest, 0));
  }
}

TEST(InputTransformTest, LeavesRawRowsAsTheyAre) {
  const InputTransform transform(v1::RAW, {});
  ExpectScale(transform.Scale(std::vector<int32_t>{0, 1}, std::vector<float>{3, -4}), 1, 0, std::sqrt(25.01), 5.1);
  ExpectScale(transform.Scale({}, {}), 1, 0, 0.1, 0.1);
}

TEST(InputTransformTest, ScalesRowsToUnitLengthWithTheBiasInput) {
  for (const v1::Transform kind : {v1::UNIT, v1::SQRT_UNIT}) {
    const InputTransform transform(kind, {});
    ExpectScale(transform.Scale(std::vector<int32_t>{0, 7}, std::vector<float>{3, 4}), std::sqrt(0.99) / 5, 0, 1,
                std::sqrt(0.99) + 0.1);
  }
}

TEST(InputTransformTest, LeavesARowWithoutAnEntryThatCountsAtTheBiasInput) {
  const InputTransform transform(v1::SQRT_UNIT, {});
  ExpectScale(transform.Scale({}, {}), 0, 0, 0.1, 0.1);
  ExpectScale(transform.Scale(std::vector<int32_t>{2}, std::vector<float>{0}), 0, 0, 0.1, 0.1);
}

// u = (0, 1) and m = (0.75, 0): u - m has the length 1.25.
TEST(InputTransformTest, ScalesTheDifferenceFromTheCenter) {
  const std::vector<float> center = {0.75, 0};
  const InputTransform transform(v1::UNIT, center);
  const double s = std::sqrt(0.99);
  ExpectScale(transform.Scale(std::vector<int32_t>{1}, std::vector<float>{5}), s / 1.25 / 5, s / 1.25, 1,
              s / 1.25 * 1.75 + 0.1);
}

TEST(InputTransformTest, SendsAnEmptyRowAwayFromTheCenter) {
  const std::vector<float> center = {0, 0.25};
  ExpectScale(InputTransform(v1::SQRT_UNIT, center).Scale({}, {}), 0, std::sqrt(0.99) / 0.25, 1, std::sqrt(0.99) + 0.1);
}

TEST(InputTransformTest, GivesTheSameWithACenterOfZeroAsWithoutOne) {
  const std::vector<float> center = {0, 0};
  const InputTransform transform(v1::UNIT, center);
  const InputScale input = transform.Scale(std::vector<int32_t>{0, 1}, std::vector<float>{3, 4});
  EXPECT_NEAR(input.scale, std::sqrt(0.99) / 5, kTolerance);
  EXPECT_NEAR(input.norm, 1, kTolerance);
  ExpectScale(transform.Scale({}, {}), 0, 0, 0.1, 0.1);
}

TEST(InputTransformTest, LeavesNothingOfARowThatIsTheCenter) {
  const std::vector<float> center = {1, 0};
  const Row row = {{0}, {8}};
  const InputScale input = InputTransform(v1::UNIT, center).Scale(row.columns, row.phi);
  EXPECT_EQ(input.scale * 8 - input.shift * 1, 0);
  EXPECT_NEAR(static_cast<double>(ExactNorm(row, center, input)), 0.1, kTolerance);
  EXPECT_LE(input.norm, 1 + kTolerance);
  EXPECT_GT(input.magnitude, 1e6);
}

TEST(InputTransformTest, GivesTheProductsThatDotProductsOfInputsNeed) {
  const std::vector<float> center = {0.5, 0.25, 2};
  const InputTransform transform(v1::UNIT, center);
  EXPECT_EQ(transform.center_square(), 0.25 + 0.0625 + 4);
  EXPECT_EQ(transform.CenterDot(std::vector<int32_t>{0, 2}, std::vector<float>{4, -3}), 2 - 6);
  const InputTransform uncentered(v1::UNIT, {});
  EXPECT_EQ(uncentered.center_square(), 0);
  EXPECT_EQ(uncentered.CenterDot(std::vector<int32_t>{0, 2}, std::vector<float>{4, -3}), 0);
}

TEST(InputTransformTest, KeepsTheNormAtTheLargestAndTheSmallestValues) {
  for (const float value : {kSmallest, 1e-38F, 1e-20F, 1.0F, 1e20F, kLargest}) {
    for (const v1::Transform kind : {v1::UNIT, v1::SQRT_UNIT}) {
      const Row row = {{0, 1, 2}, Transformed(kind, {value, value, value})};
      const InputScale input = InputTransform(kind, {}).Scale(row.columns, row.phi);
      EXPECT_NEAR(static_cast<double>(ExactNorm(row, {}, input)), 1, kTolerance) << value;
      EXPECT_NEAR(input.norm, 1, kTolerance) << value;
    }
  }
}

Row RandomRow(int32_t features, FixedRandom& random) {
  Row row;
  std::vector<float> values;
  for (int32_t column = 0; column < features; ++column) {
    if (UniformReal(random) < 0.4) {
      row.columns.push_back(column);
      const double exponent = 40 * (UniformReal(random) - 0.5);
      values.push_back(static_cast<float>((UniformReal(random) - 0.2) * std::pow(2, exponent)));
    }
  }
  row.phi = values;
  return row;
}

TEST(InputTransformTest, NeverExceedsTheNormItStates) {
  FixedRandom random(1);
  for (int round = 0; round < 2000; ++round) {
    const Row drawn = RandomRow(12, random);
    std::vector<float> center;
    for (int32_t i = 0; round % 2 == 0 && i < 12; ++i) {
      center.push_back(static_cast<float>(UniformReal(random) - 0.5) / 3);
    }
    for (const v1::Transform kind : {v1::RAW, v1::UNIT, v1::SQRT_UNIT}) {
      const Row row = {drawn.columns, Transformed(kind, drawn.phi)};
      const std::vector<float>& used = kind == v1::RAW ? std::vector<float>() : center;
      const InputScale input = InputTransform(kind, used).Scale(row.columns, row.phi);
      const long double norm = ExactNorm(row, used, input);
      ASSERT_LE(norm, static_cast<long double>(input.norm));
      ASSERT_NEAR(static_cast<double>(norm / static_cast<long double>(input.norm)), 1, 1e-10);
      ASSERT_TRUE(kind == v1::RAW || input.norm <= 1 + kTolerance) << input.norm;
      ASSERT_GE(input.magnitude, input.norm * (1 - kTolerance));
    }
  }
}

// Where u is m up to rounding, all that is left of z is what rounding leaves; the bound must hold nevertheless.
TEST(InputTransformTest, NeverExceedsTheNormItStatesNextToTheCenter) {
  FixedRandom random(2);
  for (int round = 0; round < 2000; ++round) {
    Row row = RandomRow(12, random);
    double square = 0;
    for (const float value : row.phi) {
      square += static_cast<double>(value) * static_cast<double>(value);
    }
    std::vector<float> center(12, 0);
    const double away = std::pow(10, -16 * UniformReal(random));
    for (size_t i = 0; i < row.columns.size() && square > 0; ++i) {
      center[static_cast<size_t>(row.columns[i])] =
          static_cast<float>(static_cast<double>(row.phi[i]) / std::sqrt(square) * (1 + away));
    }
    const InputScale input = InputTransform(v1::UNIT, center).Scale(row.columns, row.phi);
    ASSERT_LE(ExactNorm(row, center, input), static_cast<long double>(input.norm));
    ASSERT_LE(input.norm, 1 + kTolerance);
  }
}

}  // namespace
}  // namespace dpar
