#include "core/privacy/renyi.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/mixture_renyi.h"
#include "core/privacy/testing/expectations.h"
#include "core/privacy/testing/reference.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::BinomialRenyi;
using testing::ExpectRoundedUp;
using testing::NaiveAddition;
using testing::OfGaussian;
using testing::OfLaplace;
using testing::OfMixture;
using testing::OfSample;
using testing::OfSelection;

constexpr double kRates[] = {1e-4, 0.01, 0.3, 0.9};
constexpr double kSigmas[] = {0.5, 1.0, 5.0};
constexpr int kOrders[] = {2, 3, 8, 32};

long double NaiveLaplace(double epsilon, double order) {
  const auto e = static_cast<long double>(epsilon);
  const auto a = static_cast<long double>(order);
  return std::log(a / (2 * a - 1) * std::exp((a - 1) * e) + (a - 1) / (2 * a - 1) * std::exp(-a * e)) / (a - 1);
}

// The header's supremum over two-point selections, by ternary search.
long double NaiveSelection(double range, double order) {
  const auto r = static_cast<long double>(range);
  const auto a = static_cast<long double>(order);
  const auto value = [r, a](long double t) {
    const long double p = (std::exp(-t) - std::exp(-r)) / (1 - std::exp(-r));
    return std::log(p * std::exp(a * t) + (1 - p) * std::exp(a * (t - r))) / (a - 1);
  };
  long double low = 0;
  long double high = r;
  for (int i = 0; i < 200; ++i) {
    const long double left = low + (high - low) / 3;
    const long double right = high - (high - low) / 3;
    (value(left) < value(right) ? low : high) = value(left) < value(right) ? left : right;
  }
  return value(low);
}

std::vector<double> OrdersUpTo(double largest) {
  std::vector<double> orders;
  std::copy_if(RenyiOrders().begin(), RenyiOrders().end(), std::back_inserter(orders),
               [largest](double order) { return order <= largest; });
  return orders;
}

TEST(RenyiOfTest, GaussiansCostHalfTheOrderTimesMuSquared) {
  for (const double mu : {1e-3, 0.3, 4.0}) {
    for (const double order : {1.01, 2.0, 7.5, 1e6}) {
      const Renyi divergence = RenyiOf(OfGaussian(mu), order);
      ExpectRoundedUp(divergence.remove, static_cast<long double>(order) * mu * mu / 2, 1e-14);
      EXPECT_EQ(divergence.add, divergence.remove);
      EXPECT_EQ(divergence.In(Direction::kAdd), divergence.add);
    }
  }
  EXPECT_EQ(RenyiOf(FlatEvent(), 2).remove, 0);
}

TEST(RenyiOfTest, LaplaceIsMironovsFormula) {
  for (const double epsilon : {0.01, 0.1, 0.5, 1.0, 5.0}) {
    for (const double order : {1.5, 2.0, 8.0, 64.0}) {
      SCOPED_TRACE(absl::StrCat(epsilon, " ", order));
      const Renyi divergence = RenyiOf(OfLaplace(epsilon, 1), order);
      ExpectRoundedUp(divergence.remove, NaiveLaplace(epsilon, order), 1e-12);
      EXPECT_EQ(divergence.add, divergence.remove);
    }
  }
}

TEST(RenyiOfTest, LaplaceIsNeverAboveItsPureEpsilonOrHalfTheOrderTimesItsSquare) {
  for (const double epsilon : {1e-9, 1e-4, 0.03, 1.0, 30.0, 1e3}) {
    for (const double order : {1.01, 2.0, 64.0, 1e4, 1e6}) {
      const double divergence = RenyiOf(OfLaplace(epsilon, 1), order).remove;
      EXPECT_LE(divergence, epsilon * (1 + 1e-13)) << epsilon << " " << order;
      EXPECT_LE(divergence, order * epsilon * epsilon / 2 * (1 + 1e-12)) << epsilon << " " << order;
      EXPECT_GT(divergence, 0);
    }
  }
}

TEST(RenyiOfTest, SelectionIsTheSupremumOverTwoPointSelections) {
  for (const double range : {0.01, 0.1, 0.5, 2.0}) {
    for (const double order : {1.5, 2.0, 8.0, 32.0}) {
      SCOPED_TRACE(absl::StrCat(range, " ", order));
      const Renyi divergence = RenyiOf(OfSelection(range, 1), order);
      ExpectRoundedUp(divergence.remove, NaiveSelection(range, order), 1e-11);
      EXPECT_EQ(divergence.add, divergence.remove);
    }
  }
}

TEST(RenyiOfTest, SelectionIsAtMostTheOrderTimesRangeSquaredOverEightAndAtMostTheRange) {
  for (double range = 1e-9; range <= 1e3; range *= 3.7) {
    for (const double order : {1.01, 1.5, 2.0, 7.3, 64.0, 1e3, 1e6}) {
      const double divergence = RenyiOf(OfSelection(range, 1), order).remove;
      EXPECT_LE(divergence, order * range * range / 8 * (1 + 1e-13)) << range << " " << order;
      EXPECT_LE(divergence, range * (1 + 1e-11)) << range << " " << order;
      EXPECT_GT(divergence, 0) << range << " " << order;
    }
  }
}

TEST(RenyiOfTest, CountsAndPartsAddUp) {
  FlatEvent event = OfGaussian(0.5);
  event.mixtures[{2, 0.1, 3}] = 7;
  event.laplaces[0.25] = 3;
  event.selections[0.5] = 11;
  event.sampled.push_back({0.25, OfGaussian(1), 5});
  const double order = 5;
  const Renyi sampled = RenyiOf(OfSample(0.25, OfGaussian(1), 1), order);
  for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
    const double expected = order * 0.125 + 7 * MixtureRenyi({2, 0.1, 3}, direction, order) +
                            3 * RenyiOf(OfLaplace(0.25, 1), order).remove +
                            11 * RenyiOf(OfSelection(0.5, 1), order).remove + 5 * sampled.In(direction);
    EXPECT_NEAR(RenyiOf(event, order).In(direction), expected, 1e-13 * expected);
  }
}

TEST(RenyiOfTest, ASampledGaussianAtIntegerOrdersIsTheBinomialSum) {
  for (const double rate : kRates) {
    for (const double sigma : kSigmas) {
      for (const int order : kOrders) {
        SCOPED_TRACE(absl::StrCat(rate, " ", sigma, " ", order));
        const double remove = RenyiOf(OfSample(rate, OfGaussian(1 / sigma), 1), order).remove;
        ExpectRoundedUp(remove, BinomialRenyi(rate, sigma, order), 1e-10);
      }
    }
  }
}

TEST(RenyiOfTest, ChordsBetweenLargeOrdersOnlyRaiseASampledGaussian) {
  for (const double rate : {0.01, 0.3, 0.9}) {
    for (const double sigma : {5.0, 20.0}) {
      for (const int order : {65, 100, 200}) {
        SCOPED_TRACE(absl::StrCat(rate, " ", sigma, " ", order));
        const double remove = RenyiOf(OfSample(rate, OfGaussian(1 / sigma), 1), order).remove;
        ExpectRoundedUp(remove, BinomialRenyi(rate, sigma, order), 2e-3);
      }
    }
  }
}

TEST(RenyiOfTest, AdditionToASampledGaussianIsBoundedFromAbove) {
  for (const double rate : {0.05, 0.3, 0.9}) {
    for (const double sigma : {1.0, 3.0}) {
      for (const int order : {2, 4, 8}) {
        SCOPED_TRACE(absl::StrCat(rate, " ", sigma, " ", order));
        const Renyi divergence = RenyiOf(OfSample(rate, OfGaussian(1 / sigma), 1), order);
        const auto exact = static_cast<double>(NaiveAddition(1, rate, sigma, order));
        EXPECT_GE(divergence.add, exact * (1 - 1e-13));
        EXPECT_LE(divergence.add, -std::log1p(-rate) * (1 + 1e-14));
        EXPECT_LE(divergence.add, order / (2 * sigma * sigma) * (1 + 1e-14));
        EXPECT_LE(divergence.remove, order / (2 * sigma * sigma) * (1 + 1e-14));
      }
    }
  }
}

TEST(RenyiOfTest, ASampleAtOtherOrdersCostsWhatTheNextIntegerDoes) {
  const FlatEvent event = OfSample(0.2, OfGaussian(1), 1);
  for (const double order : {1.01, 1.5, 1.99}) {
    EXPECT_EQ(RenyiOf(event, order).remove, RenyiOf(event, 2).remove);
    EXPECT_EQ(RenyiOf(event, order).add, RenyiOf(event, 2).add);
  }
  EXPECT_EQ(RenyiOf(event, 7.2).remove, RenyiOf(event, 8).remove);
}

TEST(RenyiOfTest, NestedSamplesMultiplyTheirRates) {
  // Keeping half and then half of that is keeping a quarter.
  for (const int order : {2, 5, 16}) {
    const double nested = RenyiOf(OfSample(0.5, OfSample(0.5, OfGaussian(1), 1), 1), order).remove;
    const double plain = RenyiOf(OfSample(0.25, OfGaussian(1), 1), order).remove;
    EXPECT_NEAR(nested, plain, 1e-11 * plain);
  }
}

TEST(RenyiOfTest, RisesWithTheOrder) {
  const FlatEvent events[] = {OfMixture({1, 0.01, 1}, 1),
                              OfMixture({5, 0.2, 3}, 1),
                              OfLaplace(0.5, 1),
                              OfSelection(0.5, 1),
                              OfSelection(3, 1),
                              OfSample(0.3, OfGaussian(0.5), 1),
                              OfSample(0.01, OfLaplace(1, 10), 1)};
  for (const FlatEvent& event : events) {
    double remove = 0;
    double add = 0;
    for (const double order : OrdersUpTo(300)) {
      const Renyi divergence = RenyiOf(event, order);
      EXPECT_GE(divergence.remove, remove * (1 - 1e-11)) << order;
      remove = divergence.remove;
      if (event.sampled.empty()) {
        EXPECT_GE(divergence.add, add * (1 - 1e-11)) << order;
        add = divergence.add;
      }
    }
  }
}

TEST(RenyiOfTest, LargeOrdersAreFinite) {
  FlatEvent event = OfGaussian(1);
  event.mixtures[{3, 0.01, 1}] = 1000;
  event.laplaces[1] = 10;
  event.selections[0.5] = 10;
  event.sampled.push_back({0.1, OfGaussian(1), 5});
  const Renyi divergence = RenyiOf(event, 1e6);
  EXPECT_TRUE(std::isfinite(divergence.remove));
  EXPECT_TRUE(std::isfinite(divergence.add));
  EXPECT_GT(divergence.remove, 1000 * 9 * 1e6 / 2 * 0.99);  // three rows of noise 1, a thousand times
}

TEST(RenyiToEpsilonTest, IsTheTightConversionRoundedUp) {
  for (const double divergence : {1e-6, 0.5, 40.0}) {
    for (const double order : {1.1, 4.0, 500.0}) {
      for (const double delta : {1e-2, 1e-5, 1e-14}) {
        const auto a = static_cast<long double>(order);
        const long double exact = static_cast<long double>(divergence) + std::log((a - 1) / a) -
                                  (std::log(static_cast<long double>(delta)) + std::log(a)) / (a - 1);
        const double epsilon = RenyiToEpsilon(divergence, order, delta);
        EXPECT_GE(static_cast<long double>(epsilon), exact);
        EXPECT_NEAR(epsilon, static_cast<double>(std::max(0.0L, exact)), 1e-13 * (1 + std::fabs(epsilon)));
      }
    }
  }
  EXPECT_EQ(RenyiToEpsilon(1e-6, 2, 0.4), 0);
}

TEST(RenyiOrdersTest, AreIncreasingFromJustAboveOneToTwoToTheTwentieth) {
  const std::vector<double>& orders = RenyiOrders();
  EXPECT_EQ(orders.front(), 1.01);
  EXPECT_EQ(orders.back(), 0x1p20);
  EXPECT_TRUE(std::is_sorted(orders.begin(), orders.end()));
  EXPECT_EQ(std::adjacent_find(orders.begin(), orders.end()), orders.end());
}

TEST(RenyiEpsilonTest, FindsTheSmallestOverAllOrders) {
  const FlatEvent events[] = {OfGaussian(1),       OfGaussian(0.01),     OfMixture({1, 0.01, 1}, 1000),
                              OfLaplace(0.1, 100), OfSelection(0.1, 50), OfSample(0.3, OfGaussian(0.5), 3)};
  const std::vector<double> orders = OrdersUpTo(1024);
  for (const FlatEvent& event : events) {
    for (const double delta : {1e-2, 1e-6, 1e-12}) {
      for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
        if (direction == Direction::kAdd && !event.sampled.empty()) {
          continue;  // the smallest of three bounds may have two minima
        }
        double smallest = std::numeric_limits<double>::infinity();
        for (const double order : orders) {
          if (event.sampled.empty() || order == std::floor(order)) {
            smallest = std::min(smallest, RenyiToEpsilon(RenyiOf(event, order).In(direction), order, delta));
          }
        }
        const RenyiEpsilonBound bound = RenyiEpsilon(event, direction, delta, orders);
        EXPECT_NEAR(bound.epsilon, smallest, 1e-12 * smallest);
        EXPECT_EQ(bound.epsilon, RenyiToEpsilon(RenyiOf(event, bound.order).In(direction), bound.order, delta));
      }
    }
  }
}

TEST(RenyiEpsilonTest, ASampleIsConvertedAtIntegerOrders) {
  const RenyiEpsilonBound bound =
      RenyiEpsilon(OfSample(0.3, OfGaussian(3), 1), Direction::kRemove, 1e-3, RenyiOrders());
  EXPECT_EQ(bound.order, std::floor(bound.order));
  EXPECT_GE(bound.order, 2);
}

TEST(RenyiEpsilonTest, BetweenTheUsualOrdersFindsTheBestOfAll) {
  const FlatEvent events[] = {OfGaussian(1),       OfGaussian(8),        OfMixture({1, 0.01, 1}, 1000),
                              OfLaplace(0.1, 100), OfSelection(0.1, 50), OfSelection(1, 1000)};
  for (const FlatEvent& event : events) {
    for (const double delta : {1e-2, 1e-6}) {
      const RenyiEpsilonBound usual = RenyiEpsilon(event, Direction::kRemove, delta, RenyiOrders());
      // So close to one another that no order between two is better by 1e-8.
      std::vector<double> orders;
      for (int i = -8000; i <= 8000; ++i) {
        orders.push_back(1 + (usual.order - 1) * std::exp(1e-4 * i));
      }
      const double best = RenyiEpsilon(event, Direction::kRemove, delta, orders).epsilon;
      const double epsilon = RenyiEpsilon(event, Direction::kRemove, delta);
      EXPECT_NEAR(epsilon, best, 1e-8 * best);
      EXPECT_LE(epsilon, usual.epsilon * (1 + 1e-9));
    }
  }
}

TEST(RenyiDeltaTest, IsTheInverseOfEpsilon) {
  const FlatEvent events[] = {OfGaussian(1), OfMixture({1, 0.01, 1}, 1000), OfLaplace(0.1, 100), OfSelection(0.1, 50)};
  for (const FlatEvent& event : events) {
    for (const double delta : {1e-2, 1e-6, 1e-12}) {
      const double epsilon = RenyiEpsilon(event, Direction::kRemove, delta);
      const double back = RenyiDelta(event, Direction::kRemove, epsilon);
      EXPECT_LE(back, delta);
      EXPECT_GE(back, delta * (1 - 1e-6));
    }
  }
  EXPECT_LE(RenyiDelta(OfGaussian(10), Direction::kRemove, 0), 1);
}

}  // namespace
}  // namespace dpar
