#include "core/privacy/loss_atoms.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/mixture_loss.h"
#include "core/privacy/sampled_atoms.h"
#include "core/privacy/testing/reference.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::OfGaussian;
using testing::SampledDelta;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kTailMass = 1e-16;
constexpr Direction kDirections[] = {Direction::kRemove, Direction::kAdd};

// Delta of the atoms at epsilon.
double HockeyStick(const LossAtoms& atoms, double epsilon) {
  double delta = atoms.infinite_mass;
  for (size_t i = 0; i < atoms.loss.size(); ++i) {
    delta -= atoms.mass[i] * std::expm1(std::min(0.0, epsilon - atoms.loss[i]));
  }
  return delta;
}

// Both distributions stay distributions: P has mass 1, and Q at most that.
void ExpectTwoDistributions(const LossAtoms& atoms, double tolerance = 1e-12) {
  ASSERT_EQ(atoms.loss.size(), atoms.mass.size());
  double last = -kInf;
  double p_mass = atoms.infinite_mass;
  double q_mass = 0;
  for (size_t i = 0; i < atoms.loss.size(); ++i) {
    EXPECT_GE(atoms.loss[i], last - 1e-15);
    EXPECT_GE(atoms.mass[i], 0);
    last = atoms.loss[i];
    p_mass += atoms.mass[i];
    q_mass += atoms.mass[i] > 0 ? atoms.mass[i] * std::exp(-atoms.loss[i]) : 0;
  }
  EXPECT_NEAR(p_mass, 1, tolerance);
  EXPECT_LE(q_mass, 1 + tolerance);
}

// Epsilons from 0 to where the profile of a Gaussian is about 1e-12.
std::vector<double> EpsilonGrid(double mu) {
  std::vector<double> grid;
  for (int i = 0; i <= 60; ++i) {
    grid.push_back((mu * mu / 2 + 7 * mu) * i / 60);
  }
  return grid;
}

// The chords join the profile at intervals of `step` standard deviations; between them they are above it by at most
// about step^2 / 8 (z^2 + z mu) of it, z = 7.
double ChordFactor(double step) { return 1 + 20 * step * step; }

TEST(MixtureLossTest, IsTheLogarithmOfTheMixture) {
  for (const int64_t rows : {1, 2, 7}) {
    for (const double rate : {1e-9, 0.01, 0.5, 0.99}) {
      for (const double sigma : {0.3, 1.0, 30.0}) {
        const MixtureLoss loss({rows, rate, sigma}, 0);
        EXPECT_EQ(loss.last_row_count(), rows);
        EXPECT_EQ(loss.dropped_weight(), 0);
        for (const double y : {-8.0, -0.3, 0.0, 0.7, 12.0}) {
          const auto q = static_cast<long double>(rate);
          const long double mu = 1 / static_cast<long double>(sigma);
          long double weight = std::pow(1 - q, static_cast<long double>(rows));
          long double sum = weight;
          long double excess = 0;
          for (int64_t k = 1; k <= rows; ++k) {
            weight *= static_cast<long double>(rows - k + 1) / static_cast<long double>(k) * q / (1 - q);
            const long double shift = mu * static_cast<long double>(k);
            const long double exponent = shift * (static_cast<long double>(y) - shift / 2);
            sum += weight * std::exp(exponent);
            excess += weight * std::expm1(exponent);
          }
          const auto expected = static_cast<double>(sum < 0.5L ? std::log(sum) : std::log1p(excess));
          EXPECT_NEAR(loss(y), expected, 2e-15 * (1 + std::fabs(expected))) << rows << " " << rate << " " << sigma;
        }
      }
    }
  }
}

TEST(MixtureLossTest, LeavesOutNoMoreWeightThanAllowed) {
  const RowMixture mixture = {1000, 0.01, 5};
  const MixtureLoss loss(mixture, 1e-12);
  EXPECT_GT(loss.dropped_weight(), 0);
  EXPECT_LE(loss.dropped_weight(), 1e-12);
  EXPECT_LT(loss.last_row_count(), 100);
  // Less weight, less loss.
  const MixtureLoss whole(mixture, 0);
  for (const double y : {-5.0, 0.0, 3.0, 10.0}) {
    EXPECT_LE(loss(y), whole(y) + 1e-12);
  }
}

TEST(LossAtomsTest, GaussianAtomsAreTwoDistributions) {
  for (const double mu : {1e-6, 0.1, 1.0, 8.0}) {
    for (const double step : {0.02, 0.003}) {
      SCOPED_TRACE(absl::StrCat(mu, " ", step));
      ExpectTwoDistributions(GaussianAtoms(mu, step, kTailMass));
    }
  }
}

TEST(LossAtomsTest, MixtureAtomsAreTwoDistributions) {
  for (const int64_t rows : {1, 2, 10}) {
    for (const double rate : {1e-3, 0.1, 0.5}) {
      for (const double sigma : {0.5, 1.0, 5.0}) {
        for (const Direction direction : kDirections) {
          SCOPED_TRACE(absl::StrCat(rows, " ", rate, " ", sigma, " ", direction == Direction::kAdd));
          ExpectTwoDistributions(MixtureAtoms({rows, rate, sigma}, direction, 0.02, kTailMass));
        }
      }
    }
  }
  ExpectTwoDistributions(MixtureAtoms({1000, 0.01, 20}, Direction::kRemove, 0.02, kTailMass));
  ExpectTwoDistributions(MixtureAtoms({1000, 0.01, 20}, Direction::kAdd, 0.02, kTailMass));
}

TEST(LossAtomsTest, LaplaceAndSelectionAtomsAreTwoDistributions) {
  for (const double epsilon : {1e-9, 0.01, 1.0, 20.0, 1000.0}) {
    for (const double step : {0.02, 1e-3}) {
      SCOPED_TRACE(absl::StrCat(epsilon, " ", step));
      ExpectTwoDistributions(LaplaceAtoms(epsilon, step));
      ExpectTwoDistributions(SelectionAtoms(epsilon, step));
    }
  }
  // In one interval.
  ExpectTwoDistributions(LaplaceAtoms(3, 2));
  ExpectTwoDistributions(SelectionAtoms(3, 2));
}

TEST(LossAtomsTest, GaussianAtomsAreNeverBelowTheProfile) {
  for (const double mu : {0.1, 1.0, 4.0}) {
    for (const double step : {0.02, 0.002}) {
      const LossAtoms atoms = GaussianAtoms(mu, step, kTailMass);
      EXPECT_LE(atoms.step, step * (1 + 1e-12));
      for (const double epsilon : EpsilonGrid(mu)) {
        const double exact = GaussianDelta(mu, epsilon).value();
        const double delta = HockeyStick(atoms, epsilon);
        EXPECT_GE(delta, exact * (1 - 1e-12)) << mu << " " << step << " " << epsilon;
        EXPECT_LE(delta, exact * ChordFactor(step) + 2 * kTailMass) << mu << " " << step << " " << epsilon;
      }
    }
  }
}

TEST(LossAtomsTest, OneRowAtomsAreNeverBelowTheSampledProfile) {
  for (const double rate : {0.01, 0.2, 0.8}) {
    for (const double sigma : {0.7, 2.0}) {
      const LossAtoms remove = MixtureAtoms({1, rate, sigma}, Direction::kRemove, 0.01, kTailMass);
      const LossAtoms add = MixtureAtoms({1, rate, sigma}, Direction::kAdd, 0.01, kTailMass);
      for (const double inner : EpsilonGrid(1 / sigma)) {
        SCOPED_TRACE(absl::StrCat(rate, " ", sigma, " ", inner));
        const double up = std::log1p(rate * std::expm1(inner));
        const double removal = SampledDelta(rate, 1 / sigma, Direction::kRemove, up);
        EXPECT_GE(HockeyStick(remove, up), removal * (1 - 1e-11));
        EXPECT_LE(HockeyStick(remove, up), removal * ChordFactor(0.01) + 2 * kTailMass);
        const double down = -std::log1p(rate * std::expm1(-inner));
        const double addition = SampledDelta(rate, 1 / sigma, Direction::kAdd, down);
        EXPECT_GE(HockeyStick(add, down), addition * (1 - 1e-9));
      }
    }
  }
}

TEST(LossAtomsTest, LaplaceAtomsAreNeverBelowTheProfile) {
  for (const double epsilon : {0.01, 1.0, 10.0}) {
    for (const double step : {1.0, 0.02}) {
      const LossAtoms atoms = LaplaceAtoms(epsilon, step);
      EXPECT_EQ(atoms.loss.front(), -epsilon);
      EXPECT_EQ(atoms.loss.back(), epsilon);
      for (int i = 0; i <= 40; ++i) {
        const double at = epsilon * i / 40;
        EXPECT_GE(HockeyStick(atoms, at), -std::expm1((at - epsilon) / 2) * (1 - 1e-13)) << epsilon << " " << at;
      }
      EXPECT_EQ(HockeyStick(atoms, epsilon), 0);
    }
    // Exact where intervals end, which at this step is at every fortieth of epsilon.
    const LossAtoms fine = LaplaceAtoms(epsilon, 0.025);
    for (int i = 0; i < 40; ++i) {
      const double at = epsilon * i / 40;
      const double exact = -std::expm1((at - epsilon) / 2);
      EXPECT_NEAR(HockeyStick(fine, at), exact, 1e-12 * exact + 1e-15) << epsilon << " " << at;
    }
  }
}

TEST(LossAtomsTest, SelectionAtomsAreNeverBelowAnyTwoPointSelection) {
  for (const double range : {0.01, 1.0, 10.0}) {
    for (const double step : {1.0, 0.02}) {
      const LossAtoms atoms = SelectionAtoms(range, step);
      for (int i = 0; i <= 20; ++i) {
        const double epsilon = range * i / 20;
        const double delta = HockeyStick(atoms, epsilon);
        const double root = std::expm1((epsilon - range) / 2);
        EXPECT_GE(delta, root * root / -std::expm1(-range) * (1 - 1e-11)) << range << " " << epsilon;
        // Losses t and t - range under P, the first with probability (1 - e^(t - range)) / (1 - e^-range).
        for (int j = i; j <= 20; ++j) {
          const double t = range * j / 20;
          const double p = std::expm1(t - range) / std::expm1(-range);
          EXPECT_GE(delta, p * -std::expm1(epsilon - t) * (1 - 1e-11)) << range << " " << epsilon << " " << t;
        }
      }
    }
  }
}

TEST(LossAtomsTest, MixtureIntervalsAreAsManyAsAreCut) {
  for (const RowMixture& mixture : {RowMixture{1, 0.1, 1}, RowMixture{5, 0.3, 0.4}, RowMixture{3, 0.5, 40}}) {
    const LossAtoms atoms = MixtureAtoms(mixture, Direction::kRemove, 0.02, 1e-300);
    EXPECT_NEAR(static_cast<double>(atoms.loss.size()), MixtureIntervals(mixture, 0.02, 1e-300), 2);
  }
}

TEST(SampledAtomsTest, AreTwoDistributions) {
  for (const double rate : {0.05, 0.5, 0.95}) {
    for (const double mu : {0.3, 1.0, 3.0}) {
      for (const Direction direction : kDirections) {
        SCOPED_TRACE(absl::StrCat(rate, " ", mu, " ", direction == Direction::kAdd));
        ExpectTwoDistributions(SampledAtoms({rate, OfGaussian(mu), 1}, direction, kTailMass), 1e-6);
      }
    }
  }
}

TEST(SampledAtomsTest, NextToNothingCountsAsInfinite) {
  for (const double mu : {0.3, 1.0, 3.0}) {
    EXPECT_LE(SampledAtoms({0.5, OfGaussian(mu), 1}, Direction::kRemove, 1e-18).infinite_mass, 1e-11) << mu;
  }
}

TEST(SampledAtomsTest, AreNeverBelowTheProfileAndCloseToIt) {
  for (const double rate : {0.05, 0.5, 0.95}) {
    for (const double mu : {0.3, 1.0, 3.0}) {
      for (const Direction direction : kDirections) {
        const LossAtoms atoms = SampledAtoms({rate, OfGaussian(mu), 1}, direction, 1e-18);
        for (int i = 0; i <= 20; ++i) {
          const double inner = (mu * mu / 2 + 5 * mu) * i / 20;
          const double epsilon = direction == Direction::kRemove ? std::log1p(rate * std::expm1(inner))
                                                                 : -std::log1p(rate * std::expm1(-inner));
          const double exact = SampledDelta(rate, mu, direction, epsilon);
          const double delta = HockeyStick(atoms, epsilon);
          SCOPED_TRACE(absl::StrCat(rate, " ", mu, " ", direction == Direction::kAdd, " ", epsilon));
          EXPECT_GE(delta, exact * (1 - 1e-9));
          EXPECT_LE(delta, exact * (1 + 1e-4) + 1e-11);
        }
      }
    }
  }
}

TEST(SampledAtomsTest, OfNothingIsNoLoss) {
  const LossAtoms atoms = SampledAtoms({0.5, FlatEvent(), 1}, Direction::kRemove, kTailMass);
  EXPECT_EQ(atoms.loss, std::vector<double>{0});
  EXPECT_EQ(atoms.mass, std::vector<double>{1});
  EXPECT_EQ(atoms.infinite_mass, 0);
}

}  // namespace
}  // namespace dpar
