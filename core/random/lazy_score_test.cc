#include "core/random/lazy_score.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"

namespace dpar {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::ConstantRandom;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::NormalCdf;
using ::dpar::testing::ScriptedRandom;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<ScoreNoise, 2> kNoises = {ScoreNoise::kGumbel, ScoreNoise::kGaussian};
constexpr uint64_t kHalf = uint64_t{1} << 63U;

// A score of its own exponential. One of which nothing is known has to be refined whatever is asked.
LazyScore ScoreOf(ScoreNoise noise, double value, double scale, uint64_t bits, uint64_t turn, bool is_known = true) {
  const Enclosure known = KnownNoise(noise, KnownLargest(noise, LazyUniform(bits).KnownExponential()), turn);
  return {noise,
          value,
          scale,
          std::make_shared<AscendingExponentials>(AscendingExponentials::OfOne(bits)),
          0,
          turn,
          is_known ? known : Enclosure{-kInfinity, kInfinity}};
}

TEST(LazyScore, WhatIsKnownIsWhatAnyFurtherBitsConfirm) {
  FixedRandom random(1);
  for (int round = 0; round < 5000; ++round) {
    for (const ScoreNoise noise : kNoises) {
      const uint64_t bits = UniformBits(random) >> (static_cast<unsigned>(round) % 20U);
      const uint64_t turn = UniformBits(random);
      const double value = 10 * UniformReal(random);
      const Enclosure known = ScoreOf(noise, value, 0.3, bits, turn).known();
      for (const uint8_t byte : {uint8_t{0x00}, uint8_t{0xFF}}) {
        ConstantRandom more(byte);
        const int64_t steps = ScoreOf(noise, value, 0.3, bits, turn, false).NoiseSteps(0x1p40, more);
        const double exact = value / 0.3 + static_cast<double>(steps) * 0x1p-40;
        ASSERT_LE(known.low, exact + 0x1p-40);
        ASSERT_GE(known.high, exact - 0x1p-40);
      }
    }
  }
}

TEST(LazyScore, RoundsItsNoiseAsAnyFurtherBitsConfirm) {
  // At 2^42 the cells are about as wide as what is known, so that a bound that is too small would show.
  for (const double scale : {3.0, 0x1p24, 0x1p42}) {
    for (const ScoreNoise noise : kNoises) {
      FixedRandom random(2);
      int decided = 0;
      for (int round = 0; round < 3000; ++round) {
        const uint64_t bits = UniformBits(random) >> (static_cast<unsigned>(round) % 20U);
        const uint64_t turn = UniformBits(random);
        ScriptedRandom nothing({});
        int64_t steps = 0;
        try {
          steps = ScoreOf(noise, 0, 1, bits, turn).NoiseSteps(scale, nothing);
        } catch (const std::out_of_range&) {
          continue;  // it asked for more bits
        }
        ++decided;
        for (const uint8_t byte : {uint8_t{0x00}, uint8_t{0xFF}}) {
          ConstantRandom more(byte);
          ASSERT_EQ(ScoreOf(noise, 0, 1, bits, turn, false).NoiseSteps(scale, more), steps) << scale;
        }
      }
      EXPECT_GT(decided, 1000) << scale;
    }
  }
}

TEST(LazyScore, ComparesTheSameWhetherOrNotBitsAreDrawnAtOnce) {
  FixedRandom random(3);
  for (int round = 0; round < 5000; ++round) {
    for (const ScoreNoise noise : kNoises) {
      const std::array<uint64_t, 4> words = {UniformBits(random), UniformBits(random), UniformBits(random),
                                             UniformBits(random)};
      ScriptedRandom nothing({});
      LazyScore first = ScoreOf(noise, 0.7, 0.3, words[0], words[1]);
      LazyScore second = ScoreOf(noise, 0.2, 0.3, words[2], words[3]);
      const bool above = first.IsAbove(second, nothing);
      EXPECT_EQ(second.IsAbove(first, nothing), !above);
      LazyScore first_forced = ScoreOf(noise, 0.7, 0.3, words[0], words[1], false);
      LazyScore second_forced = ScoreOf(noise, 0.2, 0.3, words[2], words[3], false);
      EXPECT_EQ(first_forced.IsAbove(second_forced, random), above);
    }
  }
}

TEST(LazyScore, FurtherBitsDecideBetweenScoresThatAgreeSoFar) {
  for (const ScoreNoise noise : kNoises) {
    FixedRandom random(4);
    std::array<int64_t, 2> wins{};
    for (int round = 0; round < 4000; ++round) {
      LazyScore first = ScoreOf(noise, 0.5, 0.3, kHalf, 0);
      LazyScore second = ScoreOf(noise, 0.5, 0.3, kHalf, 0);
      const bool above = first.IsAbove(second, random);
      // What was drawn stays: asked again, either way around, the answer is the same and needs no bits.
      ScriptedRandom nothing({});
      ASSERT_EQ(first.IsAbove(second, nothing), above);
      ASSERT_EQ(second.IsAbove(first, nothing), !above);
      ++wins[above ? 0 : 1];
    }
    // False-alarm rate 1e-6.
    EXPECT_GT(ChiSquareTail(wins), kUnlikely);
  }
}

TEST(LazyScore, DividesValuesByTheScaleExactly) {
  // 1/3 + z and 1/3 + 2^-60 + z: closer than doubles tell, and the same noise to 128 bits.
  for (const ScoreNoise noise : kNoises) {
    ConstantRandom zeros(0);
    LazyScore smaller = ScoreOf(noise, 1, 3, kHalf, 0);
    LazyScore larger = ScoreOf(noise, 1 + 0x1p-52, 3, kHalf, 0);
    EXPECT_TRUE(larger.IsAbove(smaller, zeros));
    EXPECT_FALSE(smaller.IsAbove(larger, zeros));
  }
}

TEST(LazyScore, NoiseHasItsDistribution) {
  constexpr double kFine = 0x1p24;
  FixedRandom random(5);
  for (const ScoreNoise noise : kNoises) {
    for (const bool is_known : {true, false}) {
      std::vector<double> sample(is_known ? 100'000 : 10'000);
      for (double& value : sample) {
        LazyScore score = ScoreOf(noise, 1, 1, UniformBits(random), UniformBits(random), is_known);
        value = static_cast<double>(score.NoiseSteps(kFine, random)) / kFine;
      }
      // False-alarm rate 7.5e-6.
      const auto gumbel = [](double x) { return std::exp(-std::exp(-x)); };
      EXPECT_LT(
          noise == ScoreNoise::kGumbel ? KolmogorovStatistic(sample, gumbel) : KolmogorovStatistic(sample, NormalCdf),
          kKolmogorovLimit);
    }
  }
}

}  // namespace
}  // namespace dpar
