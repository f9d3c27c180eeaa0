#include "core/random/order_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/random/testing/plain_noise.h"
#include "core/random/testing/statistics.h"

namespace dpar {
namespace {

using ::dpar::testing::ConstantRandom;
using ::dpar::testing::FillExponential;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::ScriptedRandom;
using std::numbers::ln2;

constexpr uint64_t kHalf = uint64_t{1} << 63U;

// The next one, to the precision of what is known.
double DrawNext(AscendingExponentials& exponentials, RandomSource& random) {
  const Enclosure known = exponentials.Next(random);
  return (known.low + known.high) / 2;
}

TEST(AscendingExponentials, AddsExponentialsOverWhatRemains) {
  ScriptedRandom random({kHalf, kHalf / 2, kHalf / 16});  // exponentials of 1, 2 and 5 times log 2
  AscendingExponentials exponentials(3);
  EXPECT_EQ(exponentials.remaining(), 3);
  EXPECT_DOUBLE_EQ(DrawNext(exponentials, random), ln2 / 3);
  EXPECT_EQ(exponentials.remaining(), 2);
  EXPECT_DOUBLE_EQ(DrawNext(exponentials, random), ln2 / 3 + ln2);
  EXPECT_EQ(exponentials.remaining(), 1);
  EXPECT_DOUBLE_EQ(DrawNext(exponentials, random), ln2 / 3 + 6 * ln2);
  EXPECT_EQ(exponentials.remaining(), 0);
}

TEST(AscendingExponentials, OneIsTheLogarithmOfItsBits) {
  ConstantRandom zeros(0);
  AscendingExponentials one = AscendingExponentials::OfOne(kHalf);
  EXPECT_EQ(one.remaining(), 0);
  const Enclosure doubles = one.Enclose(0, 128, zeros).Doubles();
  EXPECT_LE(doubles.low, ln2);
  EXPECT_GE(doubles.high, ln2);
  EXPECT_LE(doubles.high - doubles.low, 0x1p-53);
}

TEST(AscendingExponentials, WhatIsKnownHoldsForAnyFurtherBits) {
  for (const int64_t population : {1, 5, 1000, 1'000'000'000}) {
    for (const uint8_t byte : {uint8_t{0x00}, uint8_t{0xFF}}) {
      FixedRandom random(7);
      ConstantRandom more(byte);
      AscendingExponentials exponentials(population);
      for (size_t place = 0; place < 20 && exponentials.remaining() > 0; ++place) {
        const Enclosure known = exponentials.Next(random);
        const Enclosure exact = exponentials.Enclose(place, 256, more).Doubles();
        EXPECT_LE(known.low, exact.low);
        EXPECT_GE(known.high, exact.high);
        EXPECT_LE(known.high - known.low, 0x1p-44 * known.high);
      }
    }
  }
}

TEST(AscendingExponentials, AreDistributedAsASortedSample) {
  constexpr size_t kPopulation = 5;
  constexpr size_t kRounds = 100'000;
  FixedRandom random(2);
  std::array<std::vector<double>, kPopulation> ascending;
  std::array<std::vector<double>, kPopulation> sorted;
  std::array<std::vector<double>, kPopulation> ascending_gaps;
  std::array<std::vector<double>, kPopulation> sorted_gaps;
  for (size_t round = 0; round < kRounds; ++round) {
    AscendingExponentials exponentials(kPopulation);
    std::array<double, kPopulation> sample{};
    FillExponential(random, sample);
    std::sort(sample.begin(), sample.end());
    for (size_t k = 0; k < kPopulation; ++k) {
      ascending[k].push_back(DrawNext(exponentials, random));
      sorted[k].push_back(sample[k]);
      // Gaps too, since the right values at each place could still hang together wrongly.
      ascending_gaps[k].push_back(ascending[k].back() - ascending[0].back());
      sorted_gaps[k].push_back(sample[k] - sample[0]);
    }
  }
  // False-alarm rate 7.5e-6 each, seven in 100,000 together.
  for (size_t k = 0; k < kPopulation; ++k) {
    EXPECT_LT(KolmogorovStatistic(ascending[k], sorted[k]), kKolmogorovLimit) << k;
    EXPECT_LT(KolmogorovStatistic(ascending_gaps[k], sorted_gaps[k]), kKolmogorovLimit) << k;
  }
}

TEST(AscendingExponentials, TheSmallestOfManyIsOneOverTheirNumber) {
  constexpr int64_t kPopulation = 1'000'000'000'000;
  FixedRandom random(4);
  std::vector<double> sample(100'000);
  for (double& value : sample) {
    AscendingExponentials exponentials(kPopulation);
    value = DrawNext(exponentials, random) * static_cast<double>(kPopulation);
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, [](double x) { return -std::expm1(-x); }), kKolmogorovLimit);
}

}  // namespace
}  // namespace dpar
