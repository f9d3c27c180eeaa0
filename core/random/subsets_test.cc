#include "core/random/subsets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"

namespace dpar {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::PoissonTail;
using ::dpar::testing::ScriptedRandom;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kHugePopulation = int64_t{1} << 40U;
constexpr uint64_t kAllOnes = ~uint64_t{0};

// The Kolmogorov-Smirnov statistic of values that should lie uniformly in 0..population-1, a large one.
double UniformStatistic(const std::vector<int64_t>& values, int64_t population) {
  std::vector<double> sample(values.size());
  std::transform(values.begin(), values.end(), sample.begin(),
                 [](int64_t value) { return static_cast<double>(value); });
  return KolmogorovStatistic(sample, [&](double x) { return x / static_cast<double>(population); });
}

bool StrictlyAscends(const std::vector<int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

bool Within(const std::vector<int64_t>& values, int64_t population) {
  return std::all_of(values.begin(), values.end(), [&](int64_t value) { return value >= 0 && value < population; });
}

std::vector<int64_t> FromZeroTo(int64_t population) {
  std::vector<int64_t> values(static_cast<size_t>(population));
  std::iota(values.begin(), values.end(), int64_t{0});
  return values;
}

TEST(SampleWithoutReplacement, TakesTheStepsOfAShuffle) {
  // Places 4, 4, 4 of the orders 01234, 41230 and 40231.
  ScriptedRandom random({4, 3, 2});
  EXPECT_THAT(SampleWithoutReplacement(random, 5, 3), ElementsAre(4, 0, 1));
}

TEST(SampleWithoutReplacement, EveryOrderedPairIsEquallyLikely) {
  FixedRandom random(1);
  std::array<int64_t, 25> counts{};
  for (int i = 0; i < 400'000; ++i) {
    const std::vector<int64_t> pair = SampleWithoutReplacement(random, 5, 2);
    ASSERT_EQ(pair.size(), 2U);
    ++counts[static_cast<size_t>(5 * pair[0] + pair[1])];
  }
  std::vector<int64_t> distinct;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (i % 6 == 0) {
      EXPECT_EQ(counts[i], 0) << "a pair of equal values";
    } else {
      distinct.push_back(counts[i]);
    }
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(distinct), kUnlikely);
}

TEST(SampleWithoutReplacement, AllOfThePopulationIsAUniformPermutation) {
  FixedRandom random(2);
  std::map<std::vector<int64_t>, int64_t> permutations;
  for (int i = 0; i < 240'000; ++i) {
    ++permutations[SampleWithoutReplacement(random, 4, 4)];
  }
  ASSERT_EQ(permutations.size(), 24U);
  std::vector<int64_t> counts;
  for (const auto& [permutation, count] : permutations) {
    EXPECT_TRUE(std::is_permutation(permutation.begin(), permutation.end(), FromZeroTo(4).begin()));
    counts.push_back(count);
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts), kUnlikely);
}

TEST(SampleWithoutReplacement, ValuesAreDistinctForEveryCount) {
  FixedRandom random(3);
  for (int64_t population = 0; population <= 40; ++population) {
    for (int64_t count = 0; count <= population; ++count) {
      const std::vector<int64_t> drawn = SampleWithoutReplacement(random, population, count);
      EXPECT_EQ(drawn.size(), static_cast<size_t>(count));
      EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), static_cast<size_t>(count));
      EXPECT_TRUE(Within(drawn, population));
    }
  }
}

TEST(SampleWithoutReplacement, NoneDrawsNoBits) {
  ScriptedRandom random({});
  EXPECT_THAT(SampleWithoutReplacement(random, 0, 0), IsEmpty());
  EXPECT_THAT(SampleWithoutReplacement(random, kHugePopulation, 0), IsEmpty());
}

TEST(SampleWithoutReplacement, OneOfOneIsZero) {
  FixedRandom random(4);
  EXPECT_THAT(SampleWithoutReplacement(random, 1, 1), ElementsAre(0));
}

TEST(SampleWithoutReplacement, AHugePopulationCostsOnlyWhatIsDrawn) {
  FixedRandom random(5);
  const std::vector<int64_t> drawn = SampleWithoutReplacement(random, kHugePopulation, 100'000);
  EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()).size(), 100'000U);
  EXPECT_TRUE(Within(drawn, kHugePopulation));
  // False-alarm rate 7.5e-6.
  EXPECT_LT(UniformStatistic(drawn, kHugePopulation), kKolmogorovLimit);
}

TEST(PoissonSubset, SkipsGeometricGaps) {
  // At 1/2 a gap is the whole part of -log2 of a uniform value: 0.3 gives 1, nearly 1 gives 0, 2^-63 leaves.
  const auto three_tenths = static_cast<uint64_t>(0.3 * 0x1p64);
  ScriptedRandom random({three_tenths, kAllOnes, kAllOnes, three_tenths, 1});
  EXPECT_THAT(PoissonSubset(random, 60, 0.5), ElementsAre(1, 2, 3, 5));
}

TEST(PoissonSubset, EndsAtThePopulation) {
  ScriptedRandom random({kAllOnes, kAllOnes, kAllOnes, kAllOnes});
  EXPECT_THAT(PoissonSubset(random, 3, 0.5), ElementsAre(0, 1, 2));
}

TEST(PoissonSubset, DrawsMoreBitsWhereAGapIsNotSure) {
  // 64 bits of 1/2 leave open on which side of 1/2 the uniform value is. What follows is above: a gap of 0.
  constexpr uint64_t kHalf = uint64_t{1} << 63U;
  ScriptedRandom above({kHalf, 1, kAllOnes, kAllOnes});
  EXPECT_THAT(PoissonSubset(above, 2, 0.5), ElementsAre(0, 1));
  ScriptedRandom below({kHalf - 1, 1, kAllOnes});
  EXPECT_THAT(PoissonSubset(below, 2, 0.5), ElementsAre(1));
}

TEST(PoissonSubset, TakesTheProbabilityAsItIs) {
  // One value at the double next to 1/2: it is not selected up to a uniform value of exactly 1 - probability, of which
  // the 54th and later bits are told by further words.
  const double probability = 0.5 + 0x1p-53;
  constexpr uint64_t kBorder = (uint64_t{1} << 63U) - (uint64_t{1} << 11U);
  for (const uint64_t bits : {kBorder - 1, kBorder}) {
    ScriptedRandom random({bits, uint64_t{1} << 32U, kAllOnes});
    EXPECT_EQ(PoissonSubset(random, 1, probability).size(), bits < kBorder ? 0U : 1U);
  }
}

TEST(PoissonSubset, EverySubsetHasItsProbability) {
  constexpr int kRounds = 400'000;
  constexpr double kProbability = 0.3;
  FixedRandom random(6);
  std::array<int64_t, 32> counts{};
  for (int i = 0; i < kRounds; ++i) {
    size_t subset = 0;
    for (const int64_t value : PoissonSubset(random, 5, kProbability)) {
      ASSERT_TRUE(value >= 0 && value < 5);
      subset |= size_t{1} << static_cast<size_t>(value);
    }
    ++counts[subset];
  }
  std::array<double, 32> expected{};
  for (size_t subset = 0; subset < expected.size(); ++subset) {
    const int size = std::popcount(subset);
    expected[subset] = kRounds * std::pow(kProbability, size) * std::pow(1 - kProbability, 5 - size);
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts, expected), kUnlikely);
}

TEST(PoissonSubset, SizesAreBinomial) {
  constexpr int kRounds = 200'000;
  constexpr int64_t kPopulation = 12;
  constexpr double kProbability = 0.4;
  FixedRandom random(7);
  std::array<int64_t, kPopulation + 1> counts{};
  for (int i = 0; i < kRounds; ++i) {
    ++counts.at(PoissonSubset(random, kPopulation, kProbability).size());
  }
  std::array<double, kPopulation + 1> expected{};
  double binomial = kRounds * std::pow(1 - kProbability, kPopulation);
  for (size_t k = 0; k < expected.size(); ++k) {
    expected[k] = binomial;
    binomial *= static_cast<double>(kPopulation - static_cast<int64_t>(k)) / static_cast<double>(k + 1) * kProbability /
                (1 - kProbability);
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts, expected), kUnlikely);
}

TEST(PoissonSubset, EveryValueIsIncludedEquallyOftenAndPairsIndependently) {
  constexpr int kRounds = 40'000;
  constexpr size_t kPopulation = 50;
  for (const double probability : {0.1, 0.3, 0.9}) {
    FixedRandom random(8);
    std::vector<double> scores(kPopulation);
    std::vector<double> products(kPopulation * kPopulation);
    std::vector<double> score(kPopulation);
    for (int i = 0; i < kRounds; ++i) {
      std::fill(score.begin(), score.end(), -probability);
      for (const int64_t value : PoissonSubset(random, kPopulation, probability)) {
        score.at(static_cast<size_t>(value)) = 1 - probability;
      }
      for (size_t a = 0; a < kPopulation; ++a) {
        scores[a] += score[a];
        for (size_t b = 0; b < a; ++b) {
          products[a * kPopulation + b] += score[a] * score[b];
        }
      }
    }
    const double variance = probability * (1 - probability);
    double single = 0;
    double pairwise = 0;
    for (size_t a = 0; a < kPopulation; ++a) {
      single += scores[a] * scores[a] / (kRounds * variance);
      for (size_t b = 0; b < a; ++b) {
        pairwise += std::pow(products[a * kPopulation + b], 2) / (kRounds * variance * variance);
      }
    }
    // False-alarm rate 1e-6 each, six in a million together.
    EXPECT_GT(ChiSquareTail(single, kPopulation), kUnlikely) << probability;
    EXPECT_GT(ChiSquareTail(pairwise, kPopulation * (kPopulation - 1) / 2), kUnlikely) << probability;
  }
}

TEST(PoissonSubset, AscendsWithinThePopulation) {
  FixedRandom random(9);
  for (const double probability : {1e-3, 0.01, 0.5, 0.99, 0.999999}) {
    for (const int64_t population : {0, 1, 2, 3, 1000, 100'000}) {
      const std::vector<int64_t> selected = PoissonSubset(random, population, probability);
      EXPECT_TRUE(StrictlyAscends(selected)) << population << " at " << probability;
      EXPECT_TRUE(Within(selected, population)) << population << " at " << probability;
    }
  }
}

TEST(PoissonSubset, ProbabilityZeroSelectsNoneWithoutBits) {
  ScriptedRandom random({});
  EXPECT_THAT(PoissonSubset(random, 0, 0), IsEmpty());
  EXPECT_THAT(PoissonSubset(random, kHugePopulation, 0), IsEmpty());
}

TEST(PoissonSubset, ProbabilityOneSelectsAllWithoutBits) {
  ScriptedRandom random({});
  EXPECT_THAT(PoissonSubset(random, 0, 1), IsEmpty());
  EXPECT_THAT(PoissonSubset(random, 1, 1), ElementsAre(0));
  EXPECT_EQ(PoissonSubset(random, 1000, 1), FromZeroTo(1000));
}

TEST(PoissonSubset, NoPopulationHasNoSubset) {
  FixedRandom random(10);
  for (const double probability : {1e-12, 0.5, 1 - 1e-12}) {
    EXPECT_THAT(PoissonSubset(random, 0, probability), IsEmpty());
  }
}

TEST(PoissonSubset, APopulationOfOneIsACoin) {
  FixedRandom random(11);
  std::array<int64_t, 2> counts{};
  for (int i = 0; i < 100'000; ++i) {
    ++counts.at(PoissonSubset(random, 1, 0.25).size());
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts, std::array<double, 2>{75'000, 25'000}), kUnlikely);
}

TEST(PoissonSubset, NearlyZeroAndNearlyOneAreRareExceptions) {
  FixedRandom random(12);
  // Either fails with probability 1e-6: a million values at 1e-12.
  EXPECT_THAT(PoissonSubset(random, 1'000'000, 1e-12), IsEmpty());
  EXPECT_EQ(PoissonSubset(random, 1'000'000, 1 - 1e-12).size(), 1'000'000U);
}

TEST(PoissonSubset, ATinyProbabilityKeepsItsRateInAHugePopulation) {
  FixedRandom random(13);
  int64_t selected = 0;
  for (int i = 0; i < 100; ++i) {
    selected += static_cast<int64_t>(PoissonSubset(random, kHugePopulation, 1e-12).size());
  }
  // 110 expected; false-alarm rate 2e-6.
  EXPECT_GT(PoissonTail(selected, 100 * 0x1p40 * 1e-12), kUnlikely) << selected;
}

TEST(PoissonSubset, AHugePopulationCostsOnlyWhatIsSelected) {
  FixedRandom random(14);
  const std::vector<int64_t> selected = PoissonSubset(random, kHugePopulation, 0x1p-24);
  EXPECT_TRUE(StrictlyAscends(selected));
  EXPECT_TRUE(Within(selected, kHugePopulation));
  // 2^16 expected; false-alarm rates 2e-6 and 7.5e-6.
  EXPECT_GT(PoissonTail(static_cast<int64_t>(selected.size()), 0x1p16), kUnlikely) << selected.size();
  EXPECT_LT(UniformStatistic(selected, kHugePopulation), kKolmogorovLimit);
}

TEST(PoissonSubset, ProbabilitiesTooSmallForAnyGapSelectNone) {
  FixedRandom random(15);
  EXPECT_THAT(PoissonSubset(random, kHugePopulation, 1e-300), IsEmpty());
  EXPECT_THAT(PoissonSubset(random, kHugePopulation, std::numeric_limits<double>::denorm_min()), IsEmpty());
}

}  // namespace
}  // namespace dpar
