// The attacks on whole trainings: exact values of their bounds, and small runs of both.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/audit/membership.h"
#include "tests/audit/one_run.h"

namespace dpar::audit {
namespace {

TEST(GuessingTailTest, IsThatOfThePublishedProgram) {
  // Values of the authors' Python program, its sums taken with math.comb and math.fsum.
  EXPECT_NEAR(GuessingTail(1000, 200, 150, 0.5, 1e-5) / 0.000621207835839, 1, 1e-9);
  EXPECT_NEAR(GuessingTail(1000, 200, 190, 2, 1e-5) / 0.00162733162156, 1, 1e-9);
  EXPECT_NEAR(GuessingTail(100, 100, 60, 0.1, 1e-3) / 0.0929422892322, 1, 1e-9);
  EXPECT_NEAR(GuessingTail(1000, 1000, 600, 0, 0) / 1.36423207803e-10, 1, 1e-6);
  EXPECT_EQ(GuessingTail(10, 10, 0, 1, 0), 1);
}

TEST(EpsilonFromGuessesTest, IsWhereTheTailMeetsTheError) {
  const double epsilon = EpsilonFromGuesses(1000, 200, 180, 1e-5, 1e-3);
  EXPECT_LE(GuessingTail(1000, 200, 180, epsilon, 1e-5), 1e-3);
  EXPECT_GT(GuessingTail(1000, 200, 180, epsilon + 1e-5, 1e-5), 1e-3);
  EXPECT_GT(epsilon, 1);
  // All right without delta: q^guesses is the error.
  EXPECT_NEAR(EpsilonFromGuesses(100, 100, 100, 0, 1e-3), -std::log(std::pow(1e-3, -0.01) - 1), 1e-5);
  // Half right proves nothing.
  EXPECT_EQ(EpsilonFromGuesses(1000, 200, 100, 1e-5, 1e-3), 0);
}

TEST(OneRunTest, GuessesAreRightWithoutNoiseAndWithinTheClaimWithIt) {
  const OneRunOptions options = {.canaries = 300, .seed = 1, .threads = 2};
  const OneRun open = AuditInOneRun(v1::FEATURES, 0, options, 1e-3);
  EXPECT_EQ(open.guesses, 60);
  EXPECT_GE(open.right, 58);
  EXPECT_GT(open.bound, 1.5);
  const OneRun noisy = AuditInOneRun(v1::FEATURES, 1, options, 1e-3);
  EXPECT_LE(noisy.claim, 1);
  EXPECT_LE(noisy.bound, noisy.claim);
  EXPECT_LT(noisy.right, 50);
}

TEST(AreaUnderCurveTest, CountsPairs) {
  const std::vector<double> members = {3, 2, 1};
  const std::vector<double> others = {2, 0};
  EXPECT_DOUBLE_EQ(AreaUnderCurve(members, others), (2 + 1.5 + 1) / 6);
  EXPECT_DOUBLE_EQ(AreaUnderCurve(others, members), 1 - (2 + 1.5 + 1) / 6);
}

TEST(MembershipTest, ShowsWithoutNoiseAndHardlyWithIt) {
  const MembershipOptions options = {.nodes = 400, .splits = 2, .seed = 1, .threads = 2};
  EXPECT_GT(AttackMembers(v1::FEATURES, 0, options).mean, 0.8);
  // (1, 1e-5) is what a Gaussian mechanism of mu 0.268 gives. A pair ranked right tells "one in, other out" from the
  // reverse: two steps of mu apart, so that Phi(mu) = 0.606 of the pairs are ranked right at most.
  const MembershipRisk risk = AttackMembers(v1::FEATURES, 1, {.nodes = 400, .splits = 10, .seed = 1, .threads = 2});
  EXPECT_LE(risk.mean, 0.606);
  EXPECT_GE(risk.mean, 0.5);
}

}  // namespace
}  // namespace dpar::audit
