#include "core/random/order_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <vector>

#include "core/random/noise.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::NormalCdf;
using ::dpar::testing::NormalUpperQuantile;
using ::dpar::testing::ScriptedRandom;
using std::numbers::ln2;

// From 1e-29 to 60: from the far upper tail through the median to the far lower one.
std::vector<double> Grid() {
  std::vector<double> grid;
  for (int i = -6670; i < 410; ++i) {
    grid.push_back(std::exp(i / 100.0));
  }
  for (const double t : {1e-29, 1e-17, ln2, std::nextafter(ln2, 0), std::nextafter(ln2, 1), 60.0}) {
    grid.push_back(t);
  }
  return grid;
}

TEST(AscendingExponentials, AddsExponentialsOverWhatRemains) {
  ScriptedRandom random({~uint64_t{0}, 0, 1});  // exponentials of log 2, 2^-64 and 64 log 2
  AscendingExponentials exponentials(3);
  EXPECT_EQ(exponentials.remaining(), 3);
  EXPECT_DOUBLE_EQ(exponentials.Next(random), ln2 / 3);
  EXPECT_EQ(exponentials.remaining(), 2);
  EXPECT_DOUBLE_EQ(exponentials.Next(random), ln2 / 3 + 0x1p-65);
  EXPECT_EQ(exponentials.remaining(), 1);
  EXPECT_DOUBLE_EQ(exponentials.Next(random), ln2 / 3 + 64 * ln2);
  EXPECT_EQ(exponentials.remaining(), 0);
}

TEST(AscendingExponentials, TheSmallestIsAboveZeroWhateverTheBits) {
  ScriptedRandom random({0});
  EXPECT_EQ(AscendingExponentials(int64_t{1} << 40U).Next(random), 0x1p-104);
}

TEST(AscendingExponentials, NeverDescend) {
  FixedRandom random(1);
  AscendingExponentials exponentials(100'000);
  double last = 0;
  while (exponentials.remaining() > 0) {
    const double next = exponentials.Next(random);
    ASSERT_GE(next, last);
    last = next;
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
      ascending[k].push_back(exponentials.Next(random));
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

TEST(AscendingExponentials, AllOfThemSumToAGammaVariable) {
  constexpr int kPopulation = 100;
  FixedRandom random(3);
  std::vector<double> sums(20'000);
  for (double& sum : sums) {
    AscendingExponentials exponentials(kPopulation);
    while (exponentials.remaining() > 0) {
      sum += exponentials.Next(random);
    }
  }
  std::vector<double> reference(sums.size());
  for (double& sum : reference) {
    for (int i = 0; i < kPopulation; ++i) {
      sum += Exponential(random);
    }
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sums, reference), kKolmogorovLimit);
}

TEST(GumbelAt, IsTheQuantile) {
  EXPECT_EQ(GumbelAt(1), 0);
  EXPECT_DOUBLE_EQ(GumbelAt(0.5), ln2);
  for (const double t : Grid()) {
    // The distribution function at the quantile is exp(-t).
    EXPECT_NEAR(std::exp(-GumbelAt(t)), t, 1e-14 * t * (1 + std::abs(std::log(t))));
  }
}

TEST(GumbelAt, TheLargestOfManyIsOneMovedByTheirLogarithm) {
  constexpr int64_t kPopulation = 1'000'000'000'000;
  FixedRandom random(4);
  std::vector<double> sample(100'000);
  for (double& value : sample) {
    value = GumbelAt(AscendingExponentials(kPopulation).Next(random)) - std::log(static_cast<double>(kPopulation));
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, [](double x) { return std::exp(-std::exp(-x)); }), kKolmogorovLimit);
}

TEST(GaussianAt, IsTheQuantile) {
  for (const double t : Grid()) {
    const auto exact = static_cast<long double>(t);
    const double expected = t < ln2 ? NormalUpperQuantile(-std::expm1(-exact)) : -NormalUpperQuantile(std::exp(-exact));
    // Beside the median, where the quantile is 0, a probability's own rounding shows.
    EXPECT_NEAR(GaussianAt(t), expected, 1e-12 * std::abs(expected) + 1e-15) << t;
  }
}

TEST(GaussianAt, HasTheTabledQuantiles) {
  EXPECT_NEAR(GaussianAt(ln2), 0, 1e-15);
  EXPECT_NEAR(GaussianAt(-std::log(0.975)), 1.959963984540054, 1e-14);
  EXPECT_NEAR(GaussianAt(-std::log(0.025)), -1.959963984540054, 1e-14);
  EXPECT_NEAR(GaussianAt(-std::log1p(-1e-6)), 4.753424308822899, 1e-13);
}

TEST(GaussianAt, Descends) {
  std::vector<double> grid = Grid();
  std::sort(grid.begin(), grid.end());
  for (size_t i = 1; i < grid.size(); ++i) {
    EXPECT_LE(GaussianAt(grid[i]), GaussianAt(grid[i - 1])) << grid[i];
  }
}

TEST(GaussianAt, TheLargestTwoOfManyAreThoseOfThemAll) {
  constexpr int64_t kPopulation = 1000;
  constexpr size_t kRounds = 20'000;
  FixedRandom random(5);
  std::vector<double> block(kPopulation);
  std::array<std::vector<double>, 2> drawn;
  std::array<std::vector<double>, 2> found;
  for (size_t round = 0; round < kRounds; ++round) {
    FillGaussian(random, block);
    std::nth_element(block.begin(), block.begin() + 1, block.end(), std::greater<>());
    AscendingExponentials exponentials(kPopulation);
    for (size_t k = 0; k < 2; ++k) {
      found[k].push_back(block[k]);
      drawn[k].push_back(GaussianAt(exponentials.Next(random)));
    }
  }
  // False-alarm rate 7.5e-6 each.
  EXPECT_LT(KolmogorovStatistic(drawn[0], found[0]), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(drawn[1], found[1]), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(drawn[0], [](double x) { return std::pow(NormalCdf(x), kPopulation); }),
            kKolmogorovLimit);
}

TEST(GaussianAt, AllOfASmallPopulationAreNormal) {
  FixedRandom random(6);
  std::vector<double> sample;
  for (int round = 0; round < 40'000; ++round) {
    AscendingExponentials exponentials(5);
    const uint64_t place = UniformBelow(random, 5);
    for (uint64_t k = 0; k < 5; ++k) {
      const double value = GaussianAt(exponentials.Next(random));
      if (k == place) {
        sample.push_back(value);
      }
    }
  }
  // One of each five, since the five depend on one another. False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, NormalCdf), kKolmogorovLimit);
}

}  // namespace
}  // namespace dpar
