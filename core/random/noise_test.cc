#include "core/random/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"
#include "core/random/vector_math.h"

namespace dpar {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::NormalCdf;
using ::dpar::testing::NormalUpperQuantile;
using ::dpar::testing::PoissonTail;
using ::dpar::testing::ScriptedRandom;
using std::numbers::ln2;

constexpr uint64_t kAllOnes = ~uint64_t{0};
// The highest word whose uniform value is below 1.
constexpr uint64_t kLastBelowOne = kAllOnes - 1025;

// The distance between a value and what it should be, in units of the last place of the latter.
double UnitsInLastPlace(double value, long double expected) {
  const double nearest = std::abs(static_cast<double>(expected));
  const double unit = std::nextafter(nearest, std::numeric_limits<double>::infinity()) - nearest;
  return static_cast<double>(std::abs(static_cast<long double>(value) - expected) / unit);
}

TEST(UnitReal, IsOneMoreThanTheBitsAndNeverZero) {
  EXPECT_EQ(UnitReal(0), 0x1p-64);
  EXPECT_EQ(UnitReal(1), 0x1p-63);
  EXPECT_EQ(UnitReal(0xffffffffU), 0x1p-32);
  EXPECT_EQ(UnitReal(0x100000000U), 0x1p-32 + 0x1p-64);
  EXPECT_EQ(UnitReal(0x7fffffffffffffffU), 0.5);
}

TEST(UnitReal, RoundsToTheNearestDouble) {
  EXPECT_EQ(UnitReal(kLastBelowOne - 1), 1 - 0x1p-53);
  EXPECT_EQ(UnitReal(kLastBelowOne), 1 - 0x1p-53);
  EXPECT_EQ(UnitReal(kLastBelowOne + 1), 1);
  EXPECT_EQ(UnitReal(kAllOnes), 1);
}

TEST(VectorLog, IsExactAtOneAndBesideIt) {
  EXPECT_EQ(VectorLog(1), 0);
  EXPECT_EQ(VectorLog(1 - 0x1p-53), -0x1p-53);
  EXPECT_EQ(VectorLog(1 + 0x1p-52), 0x1p-52);
}

TEST(VectorLog, IsWithinFourUnitsInTheLastPlace) {
  constexpr int kSteps = 2000;
  double worst = 0;
  const auto check = [&](double x) {
    worst = std::max(worst, UnitsInLastPlace(VectorLog(x), std::log(static_cast<long double>(x))));
  };
  // Every exponent of a uniform value and of an exponential one.
  for (int exponent = -64; exponent <= 6; ++exponent) {
    for (int i = 0; i < kSteps; ++i) {
      check(std::ldexp(1 + static_cast<double>(i) / kSteps, exponent));
    }
    // Where the exponent changes, and where the reduction does.
    for (const double edge : {1.0, std::sqrt(0.5)}) {
      double x = std::ldexp(edge, exponent) * (1 - 0x1p-45);
      for (int i = 0; i < 1000; ++i, x = std::nextafter(x, 1e9)) {
        check(x);
      }
    }
  }
  for (int k = 1; k <= 52; ++k) {
    check(1 + std::ldexp(1, -k));
    check(1 - std::ldexp(1, -k));
  }
  EXPECT_LE(worst, 4);
}

TEST(VectorSinAndVectorCos, AreWithinThreeUnitsInTheLastPlaceOnAnEighthTurnEitherSide) {
  constexpr int kSteps = 200'000;
  double worst_sine = 0;
  double worst_cosine = 0;
  const auto check = [&](double x) {
    const auto exact = static_cast<long double>(x);
    worst_sine = std::max(worst_sine, UnitsInLastPlace(VectorSin(x), std::sin(exact)));
    worst_cosine = std::max(worst_cosine, UnitsInLastPlace(VectorCos(x), std::cos(exact)));
  };
  for (int i = -kSteps; i <= kSteps; ++i) {
    check(std::numbers::pi / 4 * i / kSteps);
  }
  for (int k = 2; k <= 60; ++k) {
    check(std::ldexp(1, -k));
    check(-std::ldexp(1, -k));
  }
  EXPECT_LE(worst_sine, 3);
  EXPECT_LE(worst_cosine, 3);
  EXPECT_EQ(VectorSin(0), 0);
  EXPECT_EQ(VectorCos(0), 1);
}

struct Sampler {
  const char* name;
  void (*fill)(RandomSource& random, std::span<double> out);
  double (*cdf)(double x);
  double (*upper)(double p);  // exceeded with probability p
  double (*lower)(double p);  // not reached with probability p
  double smallest;            // whatever the bits are
  double largest;
};

constexpr Sampler kGaussian = {"Gaussian",
                               FillGaussian,
                               NormalCdf,
                               [](double p) { return NormalUpperQuantile(p); },
                               [](double p) { return -NormalUpperQuantile(p); },
                               -9.42,
                               9.42};
constexpr Sampler kExponential = {"Exponential",
                                  FillExponential,
                                  [](double x) { return -std::expm1(-x); },
                                  [](double p) { return -std::log(p); },
                                  [](double p) { return -std::log1p(-p); },
                                  0x1p-54,
                                  44.362};
constexpr Sampler kGumbel = {"Gumbel",
                             FillGumbel,
                             [](double x) { return std::exp(-std::exp(-x)); },
                             [](double p) { return -std::log(-std::log1p(-p)); },
                             [](double p) { return -std::log(-std::log(p)); },
                             -3.793,
                             37.430};
constexpr Sampler kLaplace = {"Laplace",
                              FillLaplace,
                              [](double x) { return x < 0 ? std::exp(x) / 2 : 1 - std::exp(-x) / 2; },
                              [](double p) { return -std::log(2 * p); },
                              [](double p) { return std::log(2 * p); },
                              -43.669,
                              43.669};

std::string NameOf(const ::testing::TestParamInfo<Sampler>& sampler) { return sampler.param.name; }

class EverySampler : public ::testing::TestWithParam<Sampler> {};
INSTANTIATE_TEST_SUITE_P(Noise, EverySampler, ::testing::Values(kGaussian, kExponential, kGumbel, kLaplace), NameOf);

TEST_P(EverySampler, HasItsDistribution) {
  FixedRandom random(1);
  std::vector<double> sample(400'001);  // odd: the last pair is cut
  GetParam().fill(random, sample);
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, GetParam().cdf), kKolmogorovLimit);
}

TEST_P(EverySampler, HasItsDistributionInFillsOfOne) {
  FixedRandom random(2);
  std::vector<double> sample(100'000);
  for (double& value : sample) {
    GetParam().fill(random, {&value, 1});
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, GetParam().cdf), kKolmogorovLimit);
}

TEST_P(EverySampler, HasItsTails) {
  constexpr int64_t kDraws = 60'000'000;
  constexpr std::array<double, 4> kTails = {1e-3, 1e-4, 1e-5, 1e-6};
  std::array<double, kTails.size()> upper{};
  std::array<double, kTails.size()> lower{};
  std::transform(kTails.begin(), kTails.end(), upper.begin(), GetParam().upper);
  std::transform(kTails.begin(), kTails.end(), lower.begin(), GetParam().lower);
  FixedRandom random(3);
  std::vector<double> block(100'000);
  std::array<int64_t, kTails.size()> above{};
  std::array<int64_t, kTails.size()> below{};
  for (int64_t done = 0; done < kDraws; done += static_cast<int64_t>(block.size())) {
    GetParam().fill(random, block);
    for (const double value : block) {
      for (size_t i = 0; i < kTails.size() && value > upper[i]; ++i) {
        ++above[i];
      }
      for (size_t i = 0; i < kTails.size() && value < lower[i]; ++i) {
        ++below[i];
      }
    }
  }
  // False-alarm rate 2e-6 each, sixteen in a million together; 60 draws are expected in the furthest tail.
  for (size_t i = 0; i < kTails.size(); ++i) {
    EXPECT_GT(PoissonTail(above[i], kTails[i] * kDraws), kUnlikely) << above[i] << " above " << upper[i];
    EXPECT_GT(PoissonTail(below[i], kTails[i] * kDraws), kUnlikely) << below[i] << " below " << lower[i];
  }
}

TEST_P(EverySampler, StaysWithinItsBoundsWhateverTheBits) {
  constexpr std::array<uint64_t, 10> kEdges = {0,
                                               1,
                                               0xffffffffU,
                                               0x7fffffffffffffffU,
                                               0x8000000000000000U,
                                               0xc000000000000000U,
                                               0x000fffffffffffffU,
                                               kLastBelowOne,
                                               kAllOnes - 1,
                                               kAllOnes};
  for (const uint64_t first : kEdges) {
    for (const uint64_t second : kEdges) {
      ScriptedRandom random({first, second});
      std::array<double, 2> out{};
      GetParam().fill(random, out);
      for (const double value : out) {
        EXPECT_TRUE(value >= GetParam().smallest && value <= GetParam().largest)
            << value << " from " << first << " and " << second;
      }
    }
  }
}

TEST_P(EverySampler, FillsExactlyWhatItIsAskedTo) {
  for (const size_t size : {1U, 2U, 3U, 511U, 512U, 513U, 1023U, 1024U, 1025U, 2047U, 2048U, 2049U}) {
    FixedRandom random(4);
    std::vector<double> out(size + 1, std::nan(""));
    GetParam().fill(random, std::span(out).first(size));
    EXPECT_TRUE(std::isnan(out.back())) << size;
    out.pop_back();
    EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](double x) { return std::isfinite(x); })) << size;
    // Two equal draws in 2^11 have a probability of about 2^-31.
    EXPECT_EQ(std::set<double>(out.begin(), out.end()).size(), size);
  }
}

TEST_P(EverySampler, DrawsNothingForNothing) {
  ScriptedRandom random({});
  GetParam().fill(random, {});
}

TEST_P(EverySampler, HasIndependentNeighbours) {
  FixedRandom random(5);
  std::vector<double> sample(1'000'000);
  GetParam().fill(random, sample);
  // Scores rather than values, so that one limit fits every distribution: uniform, and uniform in how far out it is.
  std::vector<double> place(sample.size());
  std::vector<double> distance(sample.size());
  for (size_t i = 0; i < sample.size(); ++i) {
    place[i] = std::sqrt(12) * (GetParam().cdf(sample[i]) - 0.5);
    distance[i] = std::sqrt(5) / 2 * (place[i] * place[i] - 1);
  }
  // 512 apart are the two halves of a Gaussian pair.
  for (const size_t lag : {1U, 2U, 512U, 1023U, 1024U}) {
    double places = 0;
    double distances = 0;
    for (size_t i = 0; i + lag < sample.size(); ++i) {
      places += place[i] * place[i + lag];
      distances += distance[i] * distance[i + lag];
    }
    // Five standard errors: false-alarm rate 5.7e-7 each, six in a million together.
    EXPECT_LT(std::abs(places) / std::sqrt(sample.size()), 5) << "lag " << lag;
    EXPECT_LT(std::abs(distances) / std::sqrt(sample.size()), 5) << "lag " << lag;
  }
}

std::array<double, 2> GaussianPair(uint64_t radius, uint64_t turn) {
  ScriptedRandom random({radius, turn});
  std::array<double, 2> out{};
  FillGaussian(random, out);
  return out;
}

// The middle of a quarter turn: an angle of 0.
constexpr uint64_t kNoTurn = 0x0008000000000000U;
constexpr uint64_t kSign = 0x8000000000000000U;
constexpr uint64_t kExchange = 0x4000000000000000U;

TEST(FillGaussian, TheTwoHighestBitsTurnByQuarters) {
  const double radius = std::sqrt(2 * ln2);
  constexpr uint64_t kHalf = 0x7fffffffffffffffU;
  EXPECT_NEAR(GaussianPair(kHalf, kNoTurn)[0], radius, 1e-15);
  EXPECT_EQ(GaussianPair(kHalf, kNoTurn)[1], 0);
  EXPECT_NEAR(GaussianPair(kHalf, kNoTurn | kSign)[0], -radius, 1e-15);
  EXPECT_EQ(GaussianPair(kHalf, kNoTurn | kSign)[1], 0);
  EXPECT_EQ(GaussianPair(kHalf, kNoTurn | kExchange)[0], 0);
  EXPECT_NEAR(GaussianPair(kHalf, kNoTurn | kExchange)[1], radius, 1e-15);
  EXPECT_EQ(GaussianPair(kHalf, kNoTurn | kExchange | kSign)[0], 0);
  EXPECT_NEAR(GaussianPair(kHalf, kNoTurn | kExchange | kSign)[1], -radius, 1e-15);
}

TEST(FillGaussian, ReachesAtMostTheStatedRadius) {
  EXPECT_NEAR(GaussianPair(0, kNoTurn)[0], std::sqrt(2 * 64 * ln2), 1e-14);
  EXPECT_LT(GaussianPair(0, kNoTurn)[0], 9.42);
}

TEST(FillGaussian, RadiiInTheTailComeFromEveryBit) {
  EXPECT_NEAR(GaussianPair(1, kNoTurn)[0], std::sqrt(2 * 63 * ln2), 1e-14);
  EXPECT_NEAR(GaussianPair(2, kNoTurn)[0], std::sqrt(2 * (64 * ln2 - std::log(3))), 1e-14);
}

TEST(FillGaussian, ZeroBitsAreTheLargestRadiusAtMinus45Degrees) {
  const std::array<double, 2> pair = GaussianPair(0, 0);
  EXPECT_NEAR(pair[0], std::sqrt(64 * ln2), 1e-14);
  EXPECT_NEAR(pair[1], -std::sqrt(64 * ln2), 1e-14);
}

TEST(FillGaussian, BitsOfOneAreTheOrigin) {
  EXPECT_EQ(GaussianPair(kAllOnes, kAllOnes)[0], 0);
  EXPECT_EQ(GaussianPair(kAllOnes, kAllOnes)[1], 0);
  EXPECT_EQ(GaussianPair(kAllOnes, 0)[0], 0);
  EXPECT_EQ(GaussianPair(kLastBelowOne, kNoTurn)[0], 0x1p-26);
}

TEST(FillGaussian, OneAloneIsThePairsFirst) {
  ScriptedRandom random({0, kNoTurn});
  std::array<double, 1> out{};
  FillGaussian(random, out);
  EXPECT_EQ(out[0], GaussianPair(0, kNoTurn)[0]);
}

TEST(FillGaussian, PairsAreUniformOnTheCircleWithAnIndependentRayleighRadius) {
  constexpr size_t kPairs = 400'000;
  constexpr double kTurn = 2 * std::numbers::pi;
  FixedRandom random(6);
  std::vector<double> turns(kPairs);
  std::vector<double> squares(kPairs);
  std::array<int64_t, 32> cells{};  // sixteenths of a turn, within and beyond the median radius
  for (size_t i = 0; i < kPairs; ++i) {
    std::array<double, 2> pair{};
    FillGaussian(random, pair);
    turns[i] = std::atan2(pair[1], pair[0]) / kTurn + 0.5;
    squares[i] = (pair[0] * pair[0] + pair[1] * pair[1]) / 2;
    const auto sixteenth = std::min(static_cast<size_t>(16 * turns[i]), size_t{15});
    ++cells[2 * sixteenth + (squares[i] > ln2 ? 1 : 0)];
  }
  // False-alarm rate 7.5e-6 twice and 1e-6.
  EXPECT_LT(KolmogorovStatistic(turns, [](double x) { return x; }), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(squares, [](double x) { return -std::expm1(-x); }), kKolmogorovLimit);
  EXPECT_GT(ChiSquareTail(cells), kUnlikely);
}

TEST(FillGaussian, TheHalvesOfAPairAndTheirSquaresAreUncorrelated) {
  constexpr int kPairs = 1'000'000;
  FixedRandom random(7);
  double products = 0;
  double squares = 0;
  for (int i = 0; i < kPairs; ++i) {
    std::array<double, 2> pair{};
    FillGaussian(random, pair);
    products += pair[0] * pair[1];
    squares += (pair[0] * pair[0] - 1) * (pair[1] * pair[1] - 1);
  }
  // Five standard errors each: false-alarm rate 1.2e-6.
  EXPECT_LT(std::abs(products) / std::sqrt(kPairs), 5);
  EXPECT_LT(std::abs(squares) / (2 * std::sqrt(kPairs)), 5);
}

TEST(FillGaussian, SumsOfManyHaveTheirVariance) {
  constexpr int kSums = 20'000;
  FixedRandom random(8);
  std::vector<double> block(1000);
  std::vector<double> sums(kSums);
  for (double& sum : sums) {
    FillGaussian(random, block);
    for (const double value : block) {
      sum += value / std::sqrt(block.size());
    }
  }
  // False-alarm rate 7.5e-6. Neighbours that lean the same way ever so little would widen it.
  EXPECT_LT(KolmogorovStatistic(sums, NormalCdf), kKolmogorovLimit);
}

double FirstOf(void (*fill)(RandomSource& random, std::span<double> out), uint64_t word) {
  ScriptedRandom random({word, word});
  std::array<double, 1> out{};
  fill(random, out);
  return out[0];
}

TEST(FillExponential, HasTheStatedEdges) {
  EXPECT_DOUBLE_EQ(FirstOf(FillExponential, 0), 64 * ln2);
  EXPECT_DOUBLE_EQ(FirstOf(FillExponential, 1), 63 * ln2);
  EXPECT_DOUBLE_EQ(FirstOf(FillExponential, 0x7fffffffffffffffU), ln2);
  EXPECT_EQ(FirstOf(FillExponential, kLastBelowOne), 0x1p-53);
  EXPECT_EQ(FirstOf(FillExponential, kLastBelowOne + 1), 0x1p-54);
  EXPECT_EQ(FirstOf(FillExponential, kAllOnes), 0x1p-54);
}

TEST(FillExponential, IsWithinFourUnitsInTheLastPlaceOfTheLogarithmOfItsBits) {
  constexpr size_t kDraws = 200'000;
  FixedRandom bits(9);
  double worst = 0;
  for (size_t i = 0; i < kDraws; ++i) {
    const uint64_t word = UniformBits(bits) >> (i % 64);
    worst = std::max(worst, UnitsInLastPlace(FirstOf(FillExponential, word), -std::log(UnitReal(word) + 0.0L)));
  }
  EXPECT_LE(worst, 4);
}

TEST(Exponential, HasTheStatedEdges) {
  // The lowest bit chooses the half, the others u = (bits / 2 + 1) 2^-64.
  ScriptedRandom random({1, 3, kAllOnes, kAllOnes - 1, 2, 0});
  EXPECT_DOUBLE_EQ(Exponential(random), 64 * ln2);
  EXPECT_DOUBLE_EQ(Exponential(random), 63 * ln2);
  EXPECT_DOUBLE_EQ(Exponential(random), ln2);
  EXPECT_DOUBLE_EQ(Exponential(random), ln2);
  EXPECT_EQ(Exponential(random), 0x1p-63);
  EXPECT_EQ(Exponential(random), 0x1p-64);
}

TEST(Exponential, HasItsDistribution) {
  FixedRandom random(10);
  std::vector<double> sample(200'000);
  std::generate(sample.begin(), sample.end(), [&] { return Exponential(random); });
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, [](double x) { return -std::expm1(-x); }), kKolmogorovLimit);
}

TEST(FillGumbel, HasItsEdges) {
  EXPECT_DOUBLE_EQ(FirstOf(FillGumbel, 0), -std::log(64 * ln2));
  EXPECT_DOUBLE_EQ(FirstOf(FillGumbel, kLastBelowOne), 53 * ln2);
  EXPECT_DOUBLE_EQ(FirstOf(FillGumbel, kAllOnes), 54 * ln2);
  EXPECT_DOUBLE_EQ(FirstOf(FillGumbel, 0x7fffffffffffffffU), -std::log(ln2));
}

TEST(FillLaplace, TakesItsSignFromTheLowestBit) {
  EXPECT_DOUBLE_EQ(FirstOf(FillLaplace, 0), 63 * ln2);
  EXPECT_DOUBLE_EQ(FirstOf(FillLaplace, 1), -63 * ln2);
  EXPECT_DOUBLE_EQ(FirstOf(FillLaplace, 0x7ffffffffffffffeU), ln2);
  EXPECT_DOUBLE_EQ(FirstOf(FillLaplace, 0x7fffffffffffffffU), -ln2);
  EXPECT_EQ(FirstOf(FillLaplace, kAllOnes), 0);
  EXPECT_EQ(FirstOf(FillLaplace, kAllOnes - 1), 0);
}

TEST(FillLaplace, ItsSignSaysNothingAboutItsMagnitude) {
  FixedRandom random(11);
  std::vector<double> sample(400'000);
  FillLaplace(random, sample);
  std::vector<double> positive;
  std::vector<double> negative;
  for (const double value : sample) {
    (value > 0 ? positive : negative).push_back(std::abs(value));
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(positive, negative), kKolmogorovLimit);
}

}  // namespace
}  // namespace dpar
