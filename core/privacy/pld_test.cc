#include "core/privacy/pld.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/composed_loss.h"
#include "core/privacy/fourier.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/loss_atoms.h"
#include "core/privacy/mixture_loss.h"
#include "core/privacy/sampled_atoms.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kTailMass = 1e-16;
constexpr Direction kDirections[] = {Direction::kRemove, Direction::kAdd};

// Much finer than the error that is tested for.
constexpr PldPrecision kFinest = {1e-8};

FlatEvent OfGaussian(double mu) {
  FlatEvent event;
  event.gaussian_mu = mu;
  return event;
}

FlatEvent OfMixture(const RowMixture& mixture, int64_t count) {
  FlatEvent event;
  event.mixtures[mixture] = count;
  return event;
}

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

// Delta of one row sampled at a rate, or of a Gaussian on a sample of the nodes: the rules of accountant.h.
double SampledDelta(double rate, double mu, Direction direction, double epsilon) {
  if (direction == Direction::kRemove) {
    return rate * GaussianDelta(mu, std::log1p(std::expm1(epsilon) / rate)).value();
  }
  const double rest = std::expm1(-epsilon) + rate;  // q e^-x
  if (rest <= 0) {
    return 0;
  }
  const double x = std::log(rate / rest);
  return rate * GaussianDelta(mu, std::max(0.0, x)).value() / (rate + (1 - rate) * std::exp(x));
}

// Epsilon by the same rules, for a delta below the rate.
double SampledEpsilon(double rate, double mu, Direction direction, double delta) {
  const double largest = GaussianEpsilon(mu, delta / rate).value();
  if (direction == Direction::kRemove) {
    return std::log1p(rate * std::expm1(largest));
  }
  // The smallest x with q delta(x) <= delta' (q + (1-q) e^x).
  double low = 0;
  double high = largest;
  for (int i = 0; i < 200; ++i) {
    const double x = (low + high) / 2;
    const bool met = rate * GaussianDelta(mu, x).value() <= delta * (rate + (1 - rate) * std::exp(x));
    (met ? high : low) = x;
  }
  return -std::log1p(rate * std::expm1(-high));
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

TEST(CumulantsTest, OfAGaussianAreThoseOfItsLoss) {
  // The loss is normal with mean mu^2/2 and variance mu^2, so K(t) = t (t+1) mu^2 / 2.
  const double mu = 0.5;
  const LossAtoms atoms = GaussianAtoms(mu, 0.001, 1e-30);
  for (const double tilt : {0.0, 1.0, 5.0, -0.5}) {
    const Cumulants one = CumulantsAt(atoms, tilt);
    EXPECT_NEAR(one.value, tilt * (tilt + 1) * mu * mu / 2, 1e-6);
    EXPECT_NEAR(one.mean, (tilt + 0.5) * mu * mu, 1e-6);
    EXPECT_NEAR(one.variance, mu * mu, 1e-6);
  }
  const Cumulants ten = CumulantsAt(std::vector<LossComponent>{{atoms, 4}, {atoms, 6}}, 2);
  EXPECT_NEAR(ten.value, 10 * CumulantsAt(atoms, 2).value, 1e-12);
  EXPECT_NEAR(ten.mean, 10 * CumulantsAt(atoms, 2).mean, 1e-12);
  EXPECT_NEAR(ten.variance, 10 * CumulantsAt(atoms, 2).variance, 1e-12);
}

// A hundred Gaussians of mu 0.1, which are one of mu 1, on a window of length 30.
ComposedLoss HundredGaussians(double first_loss) {
  LossGrid grid;
  grid.tilt = 5;
  grid.step = 1e-4;
  grid.first = std::llround(first_loss / grid.step);
  grid.size = RealTransform::FastSize(300'000);
  grid.tail_tilt = 8;
  const std::vector<LossComponent> components = {{GaussianAtoms(0.1, 0.001, 1e-20), 100}};
  return {components, grid};
}

TEST(ComposedLossTest, ManyGaussiansAreOneFromAbove) {
  const ComposedLoss composed = HundredGaussians(0);
  for (const double epsilon : {2.0, 3.0, 4.0, 5.0, 6.0, 7.00005}) {
    const double exact = GaussianDelta(1, epsilon).value();
    EXPECT_GE(composed.Delta(epsilon), exact) << epsilon;
    EXPECT_LE(composed.Delta(epsilon), exact * (1 + 3e-5)) << epsilon;
  }
  for (const double delta : {1e-3, 1e-5, 1e-8}) {
    const double exact = GaussianEpsilon(1, delta).value();
    const double epsilon = composed.SmallestEpsilon([delta](double) { return delta; });
    EXPECT_GE(epsilon, exact) << delta;
    EXPECT_LE(epsilon, exact + 5e-6) << delta;
    EXPECT_LE(composed.Delta(epsilon), delta);
  }
}

TEST(ComposedLossTest, KnowsNothingBelowItsWindow) {
  const ComposedLoss composed = HundredGaussians(2);
  EXPECT_EQ(composed.Delta(1.9), 1);
  EXPECT_NEAR(composed.LowestEpsilon(), 2, 1e-9);
  EXPECT_EQ(composed.SmallestEpsilon([](double) { return 0.9; }), composed.LowestEpsilon());
  EXPECT_EQ(composed.SmallestEpsilon([](double) { return 0.0; }), kInf);
}

TEST(ComposedLossTest, AboveItsWindowOnlyWhatWasCutIsLeft) {
  const ComposedLoss composed = HundredGaussians(0);
  EXPECT_LE(composed.Delta(31), 1e-17);
  EXPECT_GE(composed.Delta(31), 1e-20);
}

TEST(ComposedLossTest, DifferentComponentsCompose) {
  LossGrid grid;
  grid.tilt = 5;
  grid.step = 1e-4;
  grid.size = RealTransform::FastSize(300'000);
  grid.tail_tilt = 8;
  const std::vector<LossComponent> components = {{GaussianAtoms(0.1, 0.001, 1e-20), 36},
                                                 {GaussianAtoms(0.2, 0.0005, 1e-20), 16}};
  const ComposedLoss composed(components, grid);
  for (const double epsilon : {2.0, 4.0, 6.0}) {
    const double exact = GaussianDelta(1, epsilon).value();
    EXPECT_GE(composed.Delta(epsilon), exact) << epsilon;
    EXPECT_LE(composed.Delta(epsilon), exact * (1 + 3e-5)) << epsilon;
  }
}

TEST(PldEpsilonTest, OneStepOfOneRowIsTheExactRuleFromAbove) {
  const struct {
    double rate, sigma, delta;
  } kCases[] = {{0.01, 1, 1e-5}, {0.01, 5, 1e-5},  {0.04, 0.6, 1e-5}, {0.1, 0.8, 1e-4},
                {0.1, 10, 1e-5}, {0.5, 0.6, 1e-3}, {0.5, 1, 1e-6},    {0.5, 2, 1e-12}};
  for (const auto& at : kCases) {
    for (const Direction direction : kDirections) {
      SCOPED_TRACE(absl::StrCat(at.rate, " ", at.sigma, " ", at.delta, " ", direction == Direction::kAdd));
      const double exact = SampledEpsilon(at.rate, 1 / at.sigma, direction, at.delta);
      const FlatEvent event = OfMixture({1, at.rate, at.sigma}, 1);
      const PldBound bound = PldEpsilon(event, direction, at.delta, kFinest);
      EXPECT_GE(bound.value, exact * (1 - 1e-11));
      EXPECT_LE(bound.value, exact * (1 + 1e-6));
      const PldBound plain = PldEpsilon(event, direction, at.delta, PldPrecision());
      EXPECT_GE(plain.value, exact * (1 - 1e-11));
      EXPECT_LE(plain.value, exact * (1 + 4e-5));
    }
  }
}

TEST(PldEpsilonTest, AGaussianIsItsClosedFormFromAbove) {
  for (const double mu : {0.01, 0.1, 1.0, 5.0}) {
    for (const double delta : {1e-3, 1e-6, 1e-10}) {
      SCOPED_TRACE(absl::StrCat(mu, " ", delta));
      const double exact = GaussianEpsilon(mu, delta).value();
      const PldBound bound = PldEpsilon(OfGaussian(mu), Direction::kRemove, delta, PldPrecision());
      EXPECT_GE(bound.value, exact * (1 - 1e-11));
      EXPECT_LE(bound.value, exact + 4 * bound.discretisation_error + 4e-6 * exact);
      EXPECT_LE(bound.discretisation_error, 1e-5 * exact);
      EXPECT_GE(bound.step, 0);
    }
  }
}

TEST(PldEpsilonTest, RowsThatAreAlmostAlwaysInTheBatchAreGaussians) {
  // Three rows of noise 30, 25 times: mu = 0.5.
  for (const double delta : {1e-3, 1e-6}) {
    const double exact = GaussianEpsilon(0.5, delta).value();
    const PldBound bound = PldEpsilon(OfMixture({3, 1 - 1e-12, 30}, 25), Direction::kRemove, delta, PldPrecision());
    EXPECT_GE(bound.value, exact * (1 - 1e-8));
    EXPECT_LE(bound.value, exact * (1 + 2e-5));
  }
}

TEST(PldEpsilonTest, IsZeroWhenDeltaCoversTheChanceOfBeingSampled) {
  for (const Direction direction : kDirections) {
    EXPECT_LE(PldEpsilon(OfMixture({1, 1e-3, 1}, 1), direction, 0.01, PldPrecision()).value, 1e-9);
  }
}

TEST(PldEpsilonTest, OfNothingIsZero) {
  EXPECT_EQ(PldEpsilon(FlatEvent(), Direction::kRemove, 1e-5, PldPrecision()).value, 0);
  EXPECT_EQ(PldDelta(FlatEvent(), Direction::kRemove, 1, PldPrecision()).value, 0);
}

TEST(PldEpsilonTest, SaysWhenItWouldNeedTooManyAtoms) {
  const FlatEvent event = OfMixture({10'000, 0.5, 0.01}, 1);
  EXPECT_EQ(PldEpsilon(event, Direction::kRemove, 1e-5, PldPrecision()).value, kInf);
  EXPECT_EQ(PldDelta(event, Direction::kRemove, 1, PldPrecision()).value, 1);
}

TEST(PldEpsilonTest, AGaussianOfHugeMuBesideSomethingElseTakesNoMoreMemory) {
  FlatEvent event = OfGaussian(1e12);
  event.laplaces[1] = 1;
  EXPECT_GE(PldEpsilon(event, Direction::kRemove, 1e-5, PldPrecision()).value, 5e23);  // mu^2 / 2
  EXPECT_GE(PldDelta(event, Direction::kRemove, 1, PldPrecision()).value, 1 - 1e-9);
}

TEST(PldEpsilonTest, TheGridIsNoFinerThanAsked) {
  const FlatEvent event = OfMixture({1, 0.01, 1}, 1000);
  const PldBound coarse = PldEpsilon(event, Direction::kRemove, 1e-5, {4e-6, 5e-4});
  const PldBound fine = PldEpsilon(event, Direction::kRemove, 1e-5, PldPrecision());
  EXPECT_GE(coarse.step, 5e-4 * (1 - 1e-9));
  EXPECT_LT(fine.step, coarse.step);
  EXPECT_GE(coarse.value, fine.value);
  EXPECT_LE(coarse.value, fine.value + 2 * coarse.discretisation_error);
}

TEST(PldEpsilonTest, ARougherBoundIsAboveAFinerOne) {
  const FlatEvent event = OfMixture({4, 0.05, 5}, 200);
  for (const Direction direction : kDirections) {
    double finer = PldEpsilon(event, direction, 1e-5, {1e-7}).value;
    for (const double fraction : {4e-6, 1e-4, 1e-2}) {
      const PldBound bound = PldEpsilon(event, direction, 1e-5, {fraction});
      EXPECT_GE(bound.value, finer * (1 - 1e-9)) << fraction;
      EXPECT_LE(bound.value, finer * (1 + 3 * fraction)) << fraction;
      finer = bound.value;
    }
  }
}

TEST(PldEpsilonTest, TakesALimitThatGrowsWithEpsilon) {
  // With limit(x) = delta (1 + (1-q)/q e^x) it is the threshold of a node-sampled addition.
  const double rate = 0.2;
  const double delta = 1e-4;
  const double exact = SampledEpsilon(rate, 1, Direction::kAdd, delta);
  const auto limit = [rate, delta](double x) { return delta * (1 + (1 - rate) / rate * std::exp(std::min(x, 700.0))); };
  const double x = PldEpsilon(OfGaussian(1), Direction::kAdd, delta / rate, kFinest, limit).value;
  const double epsilon = -std::log1p(rate * std::expm1(-x));
  EXPECT_GE(epsilon, exact * (1 - 1e-11));
  EXPECT_LE(epsilon, exact * (1 + 1e-6));
}

TEST(PldDeltaTest, IsTheExactProfileFromAbove) {
  for (const double mu : {0.1, 1.0, 5.0}) {
    for (const double z : {0.0, 1.0, 3.0, 6.0}) {
      const double epsilon = mu * (mu / 2 + z);
      const double exact = GaussianDelta(mu, epsilon).value();
      const double delta = PldDelta(OfGaussian(mu), Direction::kRemove, epsilon, PldPrecision()).value;
      EXPECT_GE(delta, exact * (1 - 1e-11)) << mu << " " << z;
      EXPECT_LE(delta, exact * (1 + 2e-4)) << mu << " " << z;
    }
  }
  for (const Direction direction : kDirections) {
    for (const double inner : {0.1, 1.0, 4.0}) {
      const double epsilon =
          direction == Direction::kRemove ? std::log1p(0.1 * std::expm1(inner)) : -std::log1p(0.1 * std::expm1(-inner));
      const double exact = SampledDelta(0.1, 1, direction, epsilon);
      const double delta = PldDelta(OfMixture({1, 0.1, 1}, 1), direction, epsilon, PldPrecision()).value;
      EXPECT_GE(delta, exact * (1 - 1e-9)) << inner;
      EXPECT_LE(delta, exact * (1 + 1e-3)) << inner;
    }
  }
}

TEST(PldDeltaTest, OfASampleBesideSomethingElseIsNotBelowThatOfTheSample) {
  for (const double rate : {0.1, 0.7}) {
    FlatEvent event = OfGaussian(1e-6);
    event.sampled.push_back({rate, OfGaussian(1), 1});
    for (const Direction direction : kDirections) {
      for (const double inner : {0.5, 2.0, 4.0}) {
        SCOPED_TRACE(absl::StrCat(rate, " ", direction == Direction::kAdd, " ", inner));
        const double epsilon = direction == Direction::kRemove ? std::log1p(rate * std::expm1(inner))
                                                               : -std::log1p(rate * std::expm1(-inner));
        const double exact = SampledDelta(rate, 1, direction, epsilon);
        const double delta = PldDelta(event, direction, epsilon, PldPrecision()).value;
        EXPECT_GE(delta, exact * (1 - 1e-9));
        EXPECT_LE(delta, exact * (1 + 1e-2) + 1e-10);
      }
    }
  }
}

TEST(PldDeltaTest, FollowsEpsilonToTheSmallestDeltas) {
  for (const int64_t rows : {1, 2, 3, 5, 8}) {
    for (const int64_t steps : {10, 1000}) {
      const FlatEvent event = OfMixture({rows, 0.01, static_cast<double>(rows)}, steps);
      for (const double delta : {1e-6, 1e-10, 1e-14, 1e-18, 1e-25}) {
        SCOPED_TRACE(absl::StrCat(rows, " ", steps, " ", delta));
        const double epsilon = PldEpsilon(event, Direction::kRemove, delta, PldPrecision()).value;
        const double back = PldDelta(event, Direction::kRemove, epsilon, PldPrecision()).value;
        // Below what any budget is for, rounding shows; the bound still holds.
        EXPECT_LE(back, delta < 1e-15 ? 2 * delta : delta);
        EXPECT_GE(back, delta * 0.1);
      }
    }
  }
}

TEST(PldDeltaTest, IsZeroAboveTheLargestLoss) {
  FlatEvent event;
  event.laplaces[0.5] = 4;
  EXPECT_EQ(PldDelta(event, Direction::kRemove, 2, PldPrecision()).value, 0);
  EXPECT_GT(PldDelta(event, Direction::kRemove, 1.999, PldPrecision()).value, 0);
  // All four at the top: 2^-4 of P, which loses e^-0.001 of it to Q.
  EXPECT_GE(PldDelta(event, Direction::kRemove, 1.999, PldPrecision()).value, -std::expm1(-0.001) / 16);
}

}  // namespace
}  // namespace dpar
