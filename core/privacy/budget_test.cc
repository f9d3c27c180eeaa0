#include "core/privacy/budget.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/testing/expectations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectInvalidField;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kLargestInt = std::numeric_limits<int64_t>::max();

struct Cap {
  double epsilon;
  double delta;
};

constexpr Cap kCaps[] = {{0.001, 1e-15}, {0.1, 1e-5}, {0.5, 1e-3}, {1, 1e-5},  {1, 0.3},
                         {3.7, 1e-9},    {8, 3e-5},   {8, 1e-12},  {25, 1e-6}, {100, 1e-15}};

v1::PrivacyEvent EventOfMu(double mu) {
  v1::PrivacyEvent event;
  event.mutable_gaussian()->set_sensitivity(mu);
  event.mutable_gaussian()->set_noise_stddev(1);
  event.mutable_gaussian()->set_count(1);
  return event;
}

// What a job of this epsilon releases.
v1::PrivacyEvent EventOfEpsilon(double epsilon, double delta) {
  v1::PrivacyEvent event;
  event.mutable_gaussian()->set_sensitivity(0.3);
  event.mutable_gaussian()->set_noise_stddev(std::sqrt(50.0) * 0.3 / GaussianMu(epsilon, delta).value());
  event.mutable_gaussian()->set_count(50);
  return event;
}

absl::StatusOr<bool> AdmitsEvent(const BudgetTerms& terms, int64_t used_units, int64_t live_events,
                                 const v1::PrivacyEvent& event) {
  const absl::StatusOr<EventPrice> cost = PriceOfEvent(event, terms);
  return cost.ok() ? Admits(terms, used_units, live_events, *cost) : cost.status();
}

// The formula of the header, term by term.
long double Nats(double epsilon, double delta, int64_t order) {
  const long double a = static_cast<long double>(order);
  return epsilon - std::log((a - 1) / a) + (std::log(static_cast<long double>(delta)) + std::log(a)) / (a - 1);
}

TEST(MakeBudgetTermsTest, TheOrderIsThatOfExhaustiveSearch) {
  for (const Cap& cap : kCaps) {
    int64_t best = kMinOrder;
    long double best_value = -std::numeric_limits<long double>::infinity();
    for (int64_t order = kMinOrder; order <= kMaxOrder; ++order) {
      const long double value = Nats(cap.epsilon, cap.delta, order) / static_cast<long double>(order);
      if (value > best_value) {
        best_value = value;
        best = order;
      }
    }
    const BudgetTerms terms = MakeBudgetTerms(cap.epsilon, cap.delta).value();
    EXPECT_EQ(terms.order, best) << cap.epsilon << " " << cap.delta;
  }
}

TEST(MakeBudgetTermsTest, TheOrderIsThatOfExhaustiveSearchUpTo5000OverAGrid) {
  for (double epsilon = 0.25; epsilon <= 100; epsilon *= 1.31) {
    for (double delta = 1e-15; delta < 1; delta *= 7.3) {
      int64_t best = kMinOrder;
      double best_value = -kInf;
      for (int64_t order = kMinOrder; order <= 5000; ++order) {
        const double value = static_cast<double>(Nats(epsilon, delta, order)) / static_cast<double>(order);
        if (value > best_value) {
          best_value = value;
          best = order;
        }
      }
      EXPECT_EQ(MakeBudgetTerms(epsilon, delta).value().order, best) << epsilon << " " << delta;
    }
  }
}

TEST(MakeBudgetTermsTest, TheCapIsTheFormulaRoundedDown) {
  for (const Cap& cap : kCaps) {
    const BudgetTerms terms = MakeBudgetTerms(cap.epsilon, cap.delta).value();
    const long double units = Nats(cap.epsilon, cap.delta, terms.order) * kUnitsPerNat;
    EXPECT_LE(static_cast<long double>(terms.cap_units), units);
    EXPECT_GE(static_cast<long double>(terms.cap_units), units - 1.01L);
    EXPECT_EQ(terms.cap_epsilon, cap.epsilon);
    EXPECT_EQ(terms.cap_delta, cap.delta);
    EXPECT_EQ(CapUnits(cap.epsilon, cap.delta, terms.order).value(), terms.cap_units);
  }
}

TEST(MakeBudgetTermsTest, KnowsTheDefaultCap) {
  const BudgetTerms terms = MakeBudgetTerms(8, 3e-5).value();
  EXPECT_EQ(terms.order, 4);
  EXPECT_EQ(terms.cap_units, 5'278'342'467);
}

TEST(MakeBudgetTermsTest, SaysWhenNoOrderAdmitsAnyNoise) {
  const absl::Status status = MakeBudgetTerms(1e-6, 1e-15).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "PRIVACY_UNREACHABLE");
  EXPECT_EQ(info->metadata().at("epsilon"), "1e-06");
  EXPECT_EQ(info->metadata().at("delta"), "1e-15");
}

TEST(MakeBudgetTermsTest, RefusesBadCapsByName) {
  for (const double epsilon : {0.0, -1.0, kNan, kInf, 100.1}) {
    ExpectInvalidField(MakeBudgetTerms(epsilon, 1e-5).status(), "cap_epsilon");
    ExpectInvalidField(CapUnits(epsilon, 1e-5, 2).status(), "cap_epsilon");
  }
  for (const double delta : {0.0, 1.0, -0.1, kNan, kInf}) {
    ExpectInvalidField(MakeBudgetTerms(1, delta).status(), "cap_delta");
    ExpectInvalidField(CapUnits(1, delta, 2).status(), "cap_delta");
  }
}

TEST(CapUnitsTest, IsZeroWhenNothingFitsAtTheOrder) { EXPECT_EQ(CapUnits(0.1, 1e-5, 2).value(), 0); }

TEST(CapUnitsTest, RefusesOrdersOutsideTheSearchedRange) {
  for (const int64_t order : {int64_t{0}, int64_t{1}, int64_t{-5}, kMaxOrder + 1}) {
    ExpectInvalidField(CapUnits(1, 1e-5, order).status(), "order");
    ExpectInvalidField(EventUnits(EventOfMu(1), order).status(), "order");
  }
}

TEST(EventUnitsTest, IsHalfTheOrderTimesMuSquaredRoundedUp) {
  // 7 * 0.1^2 / 2 = 0.035 nats, and one unit for the rounding of 0.1^2.
  EXPECT_EQ(EventUnits(EventOfMu(0.1), 7).value(), 35'000'001);
  for (double mu = 1e-4; mu < 50; mu *= 1.37) {
    for (const int64_t order : {2, 3, 19, 1001, 999'999}) {
      const long double exact = static_cast<long double>(order) * mu * mu / 2 * kUnitsPerNat;
      const auto units = static_cast<long double>(EventUnits(EventOfMu(mu), order).value());
      EXPECT_GE(units, exact);
      EXPECT_LE(units, exact * (1 + 1e-14L) + 1);
    }
  }
}

TEST(EventUnitsTest, ChargesAtLeastOneUnit) { EXPECT_EQ(EventUnits(EventOfMu(1e-200), 2).value(), 1); }

TEST(EventUnitsTest, RefusesACostThatWouldOverflow) {
  ExpectInvalidField(EventUnits(EventOfMu(1e6), kMaxOrder).status(), "event");
  ExpectInvalidField(EventUnits(EventOfMu(1e200), 2).status(), "event");
  EXPECT_TRUE(EventUnits(EventOfMu(5e4), 2).ok());
}

TEST(EventUnitsTest, RefusesAnEventThatHoldsNothing) {
  ExpectInvalidField(EventUnits(v1::PrivacyEvent(), 2).status(), "event");
}

TEST(AdmitsTest, WhatIsAdmittedByUnitsNeverExceedsTheCapUnderExactComposition) {
  for (const Cap& cap : kCaps) {
    const BudgetTerms terms = MakeBudgetTerms(cap.epsilon, cap.delta).value();
    // Jobs of differing size, asked for until none fits; live_events starts at 1 to close the single-event rule.
    for (const double first_share : {1.0, 0.5, 0.11, 0.013}) {
      int64_t used = 0;
      double mu_squared = 0;
      int admitted = 0;
      double share = first_share;
      for (int asked = 0; asked < 200; ++asked) {
        const double left = static_cast<double>(terms.cap_units - used) / kUnitsPerNat;
        const double mu = std::sqrt(2 * share * left / static_cast<double>(terms.order));
        share = share < 0.9 ? share * 1.05 : first_share;
        if (mu <= 0 || !AdmitsEvent(terms, used, 1, EventOfMu(mu)).value()) {
          continue;
        }
        used += EventUnits(EventOfMu(mu), terms.order).value();
        mu_squared += mu * mu;
        ++admitted;
      }
      ASSERT_LE(used, terms.cap_units);
      if (admitted > 0) {
        EXPECT_LE(GaussianEpsilon(std::sqrt(mu_squared), cap.delta).value(), cap.epsilon);
      }
    }
  }
}

TEST(AdmitsTest, TheLastUnitFitsAndOneMoreDoesNot) {
  const BudgetTerms terms = MakeBudgetTerms(1, 1e-5).value();
  const v1::PrivacyEvent event = EventOfMu(0.05);
  const int64_t units = EventUnits(event, terms.order).value();
  EXPECT_TRUE(AdmitsEvent(terms, terms.cap_units - units, 1, event).value());
  EXPECT_FALSE(AdmitsEvent(terms, terms.cap_units - units + 1, 1, event).value());
  EXPECT_FALSE(AdmitsEvent(terms, terms.cap_units + 5, 1, event).value());
  EXPECT_FALSE(AdmitsEvent(terms, kLargestInt, 1, event).value());
}

TEST(AdmitsTest, TheOnlyEventIsJudgedByItsOwnEpsilon) {
  for (const Cap& cap : kCaps) {
    const BudgetTerms terms = MakeBudgetTerms(cap.epsilon, cap.delta).value();
    const v1::PrivacyEvent event = EventOfEpsilon(cap.epsilon, cap.delta);
    EXPECT_GT(EventUnits(event, terms.order).value(), terms.cap_units) << cap.epsilon;
    EXPECT_TRUE(AdmitsEvent(terms, 0, 0, event).value()) << cap.epsilon;
    EXPECT_FALSE(AdmitsEvent(terms, 0, 1, event).value()) << cap.epsilon;
    EXPECT_FALSE(AdmitsEvent(terms, 0, 0, EventOfEpsilon(cap.epsilon * 1.0001, cap.delta)).value()) << cap.epsilon;
  }
}

TEST(AdmitsTest, ADebitWithoutAnEventClosesTheSingleEventRule) {
  const BudgetTerms terms = MakeBudgetTerms(1, 1e-5).value();
  EXPECT_FALSE(AdmitsEvent(terms, 1, 0, EventOfEpsilon(1, 1e-5)).value());
}

TEST(AdmitsTest, WithoutItsEpsilonAnEventIsAdmittedByUnitsOnly) {
  const BudgetTerms terms = MakeBudgetTerms(1, 1e-5).value();
  EventPrice cost = PriceOfEvent(EventOfEpsilon(1, 1e-5), terms).value();
  ASSERT_GT(cost.units, terms.cap_units);
  EXPECT_TRUE(Admits(terms, 0, 0, cost).value());
  cost.epsilon.reset();
  EXPECT_FALSE(Admits(terms, 0, 0, cost).value());
  ExpectInvalidField(Admits(terms, 0, 0, EventPrice()).status(), "units");
}

TEST(EpsilonOfUnitsTest, UndoesTheCapWithinItsRounding) {
  for (const Cap& cap : kCaps) {
    const BudgetTerms terms = MakeBudgetTerms(cap.epsilon, cap.delta).value();
    const double epsilon = EpsilonOfUnits(terms, terms.cap_units).value();
    EXPECT_LE(epsilon, cap.epsilon * (1 + 1e-12) + 1e-13) << cap.epsilon;
    EXPECT_GE(epsilon, cap.epsilon - 2e-9) << cap.epsilon << ": two units at most";
    EXPECT_GT(EpsilonOfUnits(terms, 2 * terms.cap_units).value(), epsilon);
    EXPECT_EQ(EpsilonOfUnits(terms, 0).value(), 0);
  }
}

TEST(AdmitsTest, RefusesBadTermsAndUse) {
  const BudgetTerms terms = MakeBudgetTerms(1, 1e-5).value();
  ExpectInvalidField(AdmitsEvent(terms, -1, 0, EventOfMu(1)).status(), "used_units");
  ExpectInvalidField(AdmitsEvent(terms, 0, -1, EventOfMu(1)).status(), "live_events");
  ExpectInvalidField(AdmitsEvent(terms, 0, 0, v1::PrivacyEvent()).status(), "event");
  ExpectInvalidField(AdmitsEvent(BudgetTerms(), 0, 0, EventOfMu(1)).status(), "cap_epsilon");
  BudgetTerms negative = terms;
  negative.cap_units = -1;
  ExpectInvalidField(AdmitsEvent(negative, 0, 0, EventOfMu(1)).status(), "cap_units");
  BudgetTerms no_order = terms;
  no_order.order = 1;
  ExpectInvalidField(LargestAdmissibleEpsilon(no_order, 0, 0).status(), "order");
}

TEST(LargestAdmissibleEpsilonTest, IsTheCapForAnUntouchedBudget) {
  for (const Cap& cap : kCaps) {
    const BudgetTerms terms = MakeBudgetTerms(cap.epsilon, cap.delta).value();
    EXPECT_EQ(LargestAdmissibleEpsilon(terms, 0, 0).value(), cap.epsilon);
    EXPECT_LT(LargestAdmissibleEpsilon(terms, 0, 1).value(), cap.epsilon);
  }
}

TEST(LargestAdmissibleEpsilonTest, IsAdmittedAndAThousandthMoreIsNot) {
  for (const Cap& cap : kCaps) {
    const BudgetTerms terms = MakeBudgetTerms(cap.epsilon, cap.delta).value();
    for (const double used_share : {0.0, 0.1, 0.5, 0.9, 0.999}) {
      for (const int64_t live : {0, 1, 7}) {
        const auto used = static_cast<int64_t>(used_share * static_cast<double>(terms.cap_units));
        const double largest = LargestAdmissibleEpsilon(terms, used, live).value();
        if (largest == 0) {
          continue;  // the noise of what is left meets delta with any epsilon
        }
        const std::string trace = std::to_string(cap.epsilon) + " " + std::to_string(used_share);
        EXPECT_TRUE(AdmitsEvent(terms, used, live, EventOfEpsilon(largest, cap.delta)).value()) << trace;
        EXPECT_FALSE(AdmitsEvent(terms, used, live, EventOfEpsilon(largest * 1.001, cap.delta)).value()) << trace;
      }
    }
  }
}

TEST(LargestAdmissibleEpsilonTest, IsZeroWhenNothingIsLeft) {
  const BudgetTerms terms = MakeBudgetTerms(1, 1e-5).value();
  EXPECT_EQ(LargestAdmissibleEpsilon(terms, terms.cap_units, 3).value(), 0);
  EXPECT_EQ(LargestAdmissibleEpsilon(terms, terms.cap_units + 1, 3).value(), 0);
  EXPECT_EQ(LargestAdmissibleEpsilon(terms, kLargestInt, 3).value(), 0);
}

TEST(DefaultDeltaTest, IsATenthOfOneOverNRoundedDownToOneDigit) {
  EXPECT_EQ(DefaultDelta(2995).value(), 3e-5);
  EXPECT_EQ(DefaultDelta(1).value(), 0.1);
  EXPECT_EQ(DefaultDelta(2).value(), 0.05);
  EXPECT_EQ(DefaultDelta(3).value(), 0.03);
  EXPECT_EQ(DefaultDelta(9).value(), 0.01);
  EXPECT_EQ(DefaultDelta(10).value(), 0.01);
  EXPECT_EQ(DefaultDelta(11).value(), 0.009);
  EXPECT_EQ(DefaultDelta(1000).value(), 1e-4);
  EXPECT_EQ(DefaultDelta(1001).value(), 9e-5);
  EXPECT_EQ(DefaultDelta(34493).value(), 2e-6);
  EXPECT_EQ(DefaultDelta(100'000'000'000'000).value(), 1e-15);
}

TEST(DefaultDeltaTest, RefusesCountsOutOfRange) {
  ExpectInvalidField(DefaultDelta(0).status(), "node_count");
  ExpectInvalidField(DefaultDelta(-1).status(), "node_count");
  ExpectInvalidField(DefaultDelta(100'000'000'000'001).status(), "node_count");
}

}  // namespace
}  // namespace dpar
