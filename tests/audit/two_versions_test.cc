// A person in two versions of a graph: the attack on both releases stays below what both cost together, and shows that
// the larger alone would be too little.
#include <gtest/gtest.h>

#include "tests/audit/audit.h"
#include "tests/audit/case.h"

namespace dpar::audit {
namespace {

// Of 10^6 audits of sound code, one would fail.
constexpr double kError = 1e-6;

TEST(TwoVersionsTest, WhatBothReleasesShowIsWithinTheSumOfBothPrices) {
  const Case both = TwoVersionsCase(Charged::kBoth);
  const double bound = Attack(both, {.seed = 11}, kError);
  EXPECT_LE(bound, both.claim);
  EXPECT_GE(bound, both.claim / 2) << "the attack is worth something";
}

TEST(TwoVersionsTest, ChargingOnlyTheLargerIsCaught) {
  const Case larger = TwoVersionsCase(Charged::kLarger);
  EXPECT_LT(larger.claim, TwoVersionsCase(Charged::kBoth).claim);
  EXPECT_GT(Attack(larger, {.seed = 12}, kError), larger.claim);
}

}  // namespace
}  // namespace dpar::audit
