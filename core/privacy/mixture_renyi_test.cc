#include "core/privacy/mixture_renyi.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/renyi.h"
#include "core/privacy/testing/expectations.h"
#include "core/privacy/testing/reference.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::BinomialRenyi;
using testing::ExpectRoundedUp;
using testing::NaiveAddition;
using testing::OfMixture;
using testing::RowWeights;

constexpr double kRates[] = {1e-4, 0.01, 0.3, 0.9};
constexpr double kSigmas[] = {0.5, 1.0, 5.0};
constexpr int kOrders[] = {2, 3, 8, 32};

// ln of E_Q[m^2] and E_Q[m^3]/2 for the mixture's density ratio m: the product of e^(k mu y - (k mu)^2/2) over rows
// k_1, k_2, ... has the expectation e^(mu^2 times the sum of products of pairs).
long double SecondOrderMixture(int rows, double rate, double sigma) {
  const std::vector<long double> weights = RowWeights(rows, rate);
  const long double mu_squared = 1 / (static_cast<long double>(sigma) * static_cast<long double>(sigma));
  long double excess = 0;
  for (size_t j = 0; j < weights.size(); ++j) {
    for (size_t k = 0; k < weights.size(); ++k) {
      excess += weights[j] * weights[k] * std::expm1(mu_squared * static_cast<long double>(j * k));
    }
  }
  return std::log1p(excess);
}

long double ThirdOrderMixture(int rows, double rate, double sigma) {
  const std::vector<long double> weights = RowWeights(rows, rate);
  const long double mu_squared = 1 / (static_cast<long double>(sigma) * static_cast<long double>(sigma));
  long double excess = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (size_t j = 0; j < weights.size(); ++j) {
      for (size_t k = 0; k < weights.size(); ++k) {
        const auto pairs = static_cast<long double>(i * j + j * k + i * k);
        excess += weights[i] * weights[j] * weights[k] * std::expm1(mu_squared * pairs);
      }
    }
  }
  return std::log1p(excess) / 2;
}

TEST(MixtureRenyiTest, OneRowAtIntegerOrdersIsTheBinomialSum) {
  for (const double rate : kRates) {
    for (const double sigma : kSigmas) {
      for (const int order : kOrders) {
        SCOPED_TRACE(absl::StrCat(rate, " ", sigma, " ", order));
        ExpectRoundedUp(MixtureRenyi({1, rate, sigma}, Direction::kRemove, order), BinomialRenyi(rate, sigma, order),
                        1e-10);
      }
    }
  }
}

TEST(MixtureRenyiTest, MoreRowsAtSmallIntegerOrdersAreClosedSums) {
  for (const int rows : {2, 5}) {
    for (const double rate : kRates) {
      for (const double sigma : {1.0, 3.0, 20.0}) {
        SCOPED_TRACE(absl::StrCat(rows, " ", rate, " ", sigma));
        const RowMixture mixture = {rows, rate, sigma};
        ExpectRoundedUp(MixtureRenyi(mixture, Direction::kRemove, 2), SecondOrderMixture(rows, rate, sigma), 1e-10);
        ExpectRoundedUp(MixtureRenyi(mixture, Direction::kRemove, 3), ThirdOrderMixture(rows, rate, sigma), 1e-10);
      }
    }
  }
}

TEST(MixtureRenyiTest, AdditionIsTheIntegralOfTheInversePower) {
  for (const int rows : {1, 2, 5}) {
    for (const double rate : {0.05, 0.3, 0.9}) {
      for (const double sigma : {1.0, 3.0}) {
        for (const double order : {1.5, 2.0, 4.0, 7.5}) {
          SCOPED_TRACE(absl::StrCat(rows, " ", rate, " ", sigma, " ", order));
          ExpectRoundedUp(MixtureRenyi({rows, rate, sigma}, Direction::kAdd, order),
                          NaiveAddition(rows, rate, sigma, order), 1e-10);
        }
      }
    }
  }
}

TEST(MixtureRenyiTest, AdditionOfOneRowIsNeverAboveItsRemoval) {
  for (const double rate : kRates) {
    for (const double sigma : kSigmas) {
      for (const double order : {1.1, 1.9, 2.0, 5.5, 32.0, 200.0}) {
        const RowMixture mixture = {1, rate, sigma};
        const double remove = MixtureRenyi(mixture, Direction::kRemove, order);
        EXPECT_LE(MixtureRenyi(mixture, Direction::kAdd, order), remove * (1 + 1e-10));
        EXPECT_EQ(RenyiOf(OfMixture(mixture, 1), order).remove, RenyiOf(OfMixture(mixture, 1), order).add);
      }
    }
  }
}

TEST(MixtureRenyiTest, NearRateOneIsTheGaussianOfAllRows) {
  const auto expect_whole = [](int64_t rows, double sigma, Direction direction, double order) {
    SCOPED_TRACE(absl::StrCat(rows, " ", sigma, " ", order));
    const double shift = static_cast<double>(rows) / sigma;
    const double whole = order * shift * shift / 2;
    const double divergence = MixtureRenyi({rows, 1 - 1e-12, sigma}, direction, order);
    EXPECT_LE(divergence, whole * (1 + 1e-14));
    EXPECT_GE(divergence, whole * (1 - 1e-9));
  };
  for (const int64_t rows : {1, 3}) {
    for (const double order : {1.5, 2.0, 32.0}) {
      expect_whole(rows, 0.5, Direction::kRemove, order);
      expect_whole(rows, 5, Direction::kRemove, order);
    }
    // The other way round, rare outcomes tell of the 1e-12; these orders do not see them.
    for (const double order : {1.5, 2.0}) {
      expect_whole(rows, 5, Direction::kAdd, order);
    }
  }
}

TEST(MixtureRenyiTest, IsAboutTheSquareOfASmallRate) {
  // a/2 E[(m-1)^2] = a/2 q^2 (e^(1/sigma^2) - 1) to first order.
  for (const double rate : {1e-6, 1e-8}) {
    for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
      const double divergence = MixtureRenyi({1, rate, 1}, direction, 4);
      const double expected = 2 * rate * rate * std::expm1(1.0);
      EXPECT_NEAR(divergence, expected, 1e-3 * expected) << rate;
    }
  }
}

TEST(MixtureRenyiTest, IsNeverAboveTheGaussianWithoutSampling) {
  for (const double rate : kRates) {
    for (const double order : {1.01, 2.0, 100.0, 1e4, 1e6}) {
      EXPECT_LE(MixtureRenyi({4, rate, 2}, Direction::kRemove, order), order * 2 * (1 + 1e-14));
      EXPECT_LE(MixtureRenyi({4, rate, 2}, Direction::kAdd, order), order * 2 * (1 + 1e-14));
    }
  }
}

TEST(MixtureRenyiTest, LargeOrdersAreFinite) {
  constexpr double kOrder = 1e6;
  for (const double rate : {1e-4, 0.01, 0.5}) {
    for (const double sigma : {0.5, 1.0, 10.0}) {
      SCOPED_TRACE(absl::StrCat(rate, " ", sigma));
      // The shifted part alone: q^a e^(a(a-1)/(2 sigma^2)); the other is smaller by e^(-a/sigma^2).
      const double remove = kOrder / (2 * sigma * sigma) + kOrder / (kOrder - 1) * std::log(rate);
      const double removed = MixtureRenyi({1, rate, sigma}, Direction::kRemove, kOrder);
      EXPECT_NEAR(removed, remove, 1e-9 * remove);
      // The loss of an addition is at most -ln(1 - q), which high orders come close to.
      const double added = MixtureRenyi({1, rate, sigma}, Direction::kAdd, kOrder);
      EXPECT_LE(added, -std::log1p(-rate) * (1 + 1e-9));
      EXPECT_GT(added, 0);
    }
  }
}

TEST(LogPowerExcessTest, NearZeroIsTheSecondOrderTerm) {
  for (const double power : {-7.0, -0.5, 1.01, 2.0, 30.0}) {
    for (const double loss : {1e-9, -1e-9, 1e-150, -1e-150}) {
      const double expected = std::log(power * (power - 1) / 2) + 2 * std::log(std::fabs(loss));
      EXPECT_NEAR(LogPowerExcess(power, loss), expected, 1e-7) << power << " " << loss;
    }
    EXPECT_EQ(LogPowerExcess(power, 0), -std::numeric_limits<double>::infinity());
  }
}

TEST(LogPowerExcessTest, AgreesWithTheFormulaBetween) {
  for (const double power : {-9.0, -0.5, 1.25, 2.0, 7.0}) {
    for (const double loss : {-20.0, -3.0, -0.3, -0.051, -0.049, 0.007, 0.049, 0.051, 0.3, 3.0, 20.0}) {
      const auto p = static_cast<long double>(power);
      const auto l = static_cast<long double>(loss);
      const long double expected = std::log(std::expm1(p * l) - p * std::expm1(l));
      EXPECT_NEAR(LogPowerExcess(power, loss), static_cast<double>(expected), 1e-12) << power << " " << loss;
    }
  }
}

TEST(LogPowerExcessTest, HugeExponentsNeitherOverflowNorVanish) {
  EXPECT_EQ(LogPowerExcess(2, 1e4), 2e4);
  EXPECT_EQ(LogPowerExcess(1e6, 1e4), 1e10);
  EXPECT_EQ(LogPowerExcess(-3, -1e4), 3e4);
  EXPECT_NEAR(LogPowerExcess(-3, 1e4), 1e4 + std::log(3.0), 1e-11);
  // e^(1.0001 l) - 1.0001 e^l, where the two are close.
  EXPECT_NEAR(LogPowerExcess(1.0001, 600), 600 + std::log(std::expm1(0.06) - 0.0001), 1e-9);
  // Where one formula takes over from another.
  for (const double power : {2.0, -2.0}) {
    const double loss = 500 / power;
    EXPECT_NEAR(LogPowerExcess(power, loss * (1 - 1e-12)), LogPowerExcess(power, loss), 1e-8);
  }
}

}  // namespace
}  // namespace dpar
