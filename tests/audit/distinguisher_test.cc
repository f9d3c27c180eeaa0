#include "tests/audit/distinguisher.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/privacy/gaussian.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/plain_noise.h"
#include "tests/audit/audit.h"
#include "tests/audit/case.h"

namespace dpar::audit {
namespace {

using ::dpar::testing::FillGaussian;
using ::dpar::testing::FixedRandom;

TEST(ClopperPearson, AreTheTextbookValues) {
  // 95% intervals of 5 in 10, and the closed forms at none and all.
  EXPECT_NEAR(ProbabilityAtLeast(5, 10, 0.025), 0.187086, 1e-6);
  EXPECT_NEAR(ProbabilityAtMost(5, 10, 0.025), 0.812914, 1e-6);
  EXPECT_EQ(ProbabilityAtLeast(0, 10, 0.025), 0);
  EXPECT_NEAR(ProbabilityAtMost(0, 10, 0.025), 1 - std::pow(0.025, 0.1), 1e-12);
  EXPECT_NEAR(ProbabilityAtLeast(10, 10, 0.025), std::pow(0.025, 0.1), 1e-12);
  EXPECT_EQ(ProbabilityAtMost(10, 10, 0.025), 1);
}

TEST(ClopperPearson, AreWrongNoMoreOftenThanStated) {
  // The probability that the lower bound is above the truth, summed exactly over all outcomes.
  constexpr int64_t kTrials = 40;
  for (const double truth : {0.02, 0.3, 0.5, 0.97}) {
    double wrong_low = 0;
    double wrong_high = 0;
    double mass = std::pow(1 - truth, kTrials);
    for (int64_t hits = 0; hits <= kTrials; ++hits) {
      wrong_low += ProbabilityAtLeast(hits, kTrials, 0.01) > truth ? mass : 0;
      wrong_high += ProbabilityAtMost(hits, kTrials, 0.01) < truth ? mass : 0;
      mass *= static_cast<double>(kTrials - hits) / static_cast<double>(hits + 1) * truth / (1 - truth);
    }
    EXPECT_LE(wrong_low, 0.01) << truth;
    EXPECT_LE(wrong_high, 0.01) << truth;
  }
}

// Runs of a Gaussian mechanism that moves the first of some columns by mu.
Releases Gaussians(Eigen::Index runs, Eigen::Index columns, double mu, uint64_t seed) {
  FixedRandom random(seed);
  Releases releases(runs, columns);
  FillGaussian(random, {releases.data(), static_cast<size_t>(releases.size())});
  releases.col(0).array() += mu;
  return releases;
}

TEST(EpsilonAtLeastTest, ComesCloseToTheEpsilonOfAGaussianMechanismAndStaysBelow) {
  const double mu = GaussianMu(1, kDelta).value();
  const double bound = EpsilonAtLeast(Gaussians(100'000, 6, mu, 1), Gaussians(100'000, 6, 0, 2), kDelta, 1e-4);
  EXPECT_LE(bound, 1);
  EXPECT_GE(bound, 0.6);
}

TEST(EpsilonAtLeastTest, ProvesNothingWhereThereIsNothingToTell) {
  EXPECT_LE(EpsilonAtLeast(Gaussians(20'000, 3, 0, 3), Gaussians(20'000, 3, 0, 4), kDelta, 1e-4), 0.05);
  // Nor where nothing is released at all.
  EXPECT_EQ(EpsilonAtLeast(Releases::Zero(100, 2), Releases::Zero(100, 2), kDelta, 1e-4), 0);
}

TEST(EpsilonAtLeastTest, IsAboveTheTruthNoMoreOftenThanStated) {
  // A mechanism that tells which graph it saw with odds e^0.2: at an error of 1% for each, 200 audits have 2 false
  // alarms in the worst case; more than 9 would be a chance of 2e-4 had the seed not been fixed.
  const double truth = 0.2;
  FixedRandom random(5);
  const auto coins = [&](double probability) {
    Releases releases(1000, 1);
    for (Eigen::Index i = 0; i < releases.rows(); ++i) {
      releases(i, 0) = UniformReal(random) < probability ? 1 : 0;
    }
    return releases;
  };
  int alarms = 0;
  for (int audit = 0; audit < 200; ++audit) {
    const Releases with = coins(std::exp(truth) / (1 + std::exp(truth)));
    alarms += EpsilonAtLeast(with, coins(1 / (1 + std::exp(truth))), 0, 0.01) > truth ? 1 : 0;
  }
  EXPECT_LE(alarms, 9);
}

TEST(EpsilonAtLeastTest, FindsNoiseThatWasUsedTwice) {
  // Two coordinates with the same noise: their difference tells all, though each alone tells little.
  Releases with = Gaussians(2000, 2, 0.1, 6);
  Releases without = Gaussians(2000, 2, 0, 7);
  const double fresh = EpsilonAtLeast(with, without, kDelta, 1e-4);
  with.col(1) = with.col(0).array() - 0.1;
  without.col(1) = without.col(0);
  EXPECT_LT(fresh, 0.5);
  EXPECT_GT(EpsilonAtLeast(with, without, kDelta, 1e-4), 3);
}

TEST(EpsilonAtLeastTest, SurvivesReleasesThatAreNotFinite) {
  Releases with = Gaussians(1000, 1, 0, 8);
  with(3, 0) = std::nan("");
  const double bound = EpsilonAtLeast(with, Gaussians(1000, 1, 0, 9), kDelta, 1e-4);
  EXPECT_TRUE(std::isfinite(bound));
}

// sqrt(M) for sqrt(2M) is noise of 0.71 times what is due. EM0's price is that of selections which no graph makes.
TEST(SmallestFaultsTest, IsTheLargestFactorOfNoiseThatTheAuditNotices) {
  const std::vector<Sharpness> found = SmallestFaults(ExtremalRowCases(), {}, {1});
  ASSERT_EQ(found.size(), 3U);
  const std::vector<std::pair<std::string, double>> at_least = {
      {"GM rows", 0.75}, {"EM0 rows", 0.6}, {"EM1 rows", 0.75}};
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].mechanism, at_least[i].first);
    ASSERT_EQ(found[i].found.size(), 1U);
    EXPECT_GE(found[i].found[0], at_least[i].second) << found[i].mechanism;
    EXPECT_LE(found[i].found[0], 0.9) << found[i].mechanism;
  }
}

}  // namespace
}  // namespace dpar::audit
