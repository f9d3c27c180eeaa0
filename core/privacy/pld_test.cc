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
#include "core/privacy/testing/reference.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::OfGaussian;
using testing::OfMixture;
using testing::SampledDelta;
using testing::SampledEpsilon;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Direction kDirections[] = {Direction::kRemove, Direction::kAdd};

// Much finer than the error that is tested for.
constexpr PldPrecision kFinest = {1e-8};

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

TEST(PldEpsilonTest, DifferentKindsOfStepsComposeLikeOneKind) {
  // Noise that differs in its ninth digit makes two kinds, which take the way of different mechanisms.
  for (const RowMixture& mixture : {RowMixture{1, 0.02, 1}, RowMixture{3, 0.05, 4}}) {
    RowMixture other = mixture;
    other.noise_multiplier *= 1 + 1e-9;
    FlatEvent two_kinds = OfMixture(mixture, 300);
    two_kinds.mixtures[other] = 700;
    for (const Direction direction : kDirections) {
      for (const double delta : {1e-3, 1e-6, 1e-10}) {
        const double one = PldEpsilon(OfMixture(mixture, 1000), direction, delta, PldPrecision()).value;
        const double two = PldEpsilon(two_kinds, direction, delta, PldPrecision()).value;
        EXPECT_NEAR(two, one, 2e-5 * one) << mixture.rows << " " << delta;
      }
    }
  }
}

TEST(PldEpsilonTest, OfMechanismsWithJumpsIsNotBelowWhatDeltaSays) {
  FlatEvent event = OfMixture({9, 0.0013396821716751186, 1.1785758624683325}, 1);
  event.laplaces[1 / 0.2754504874357746] = 1;
  for (double delta = 1e-3; delta > 1e-13; delta /= 7) {
    for (const Direction direction : kDirections) {
      const double epsilon = PldEpsilon(event, direction, delta, PldPrecision()).value;
      EXPECT_LE(PldDelta(event, direction, epsilon, PldPrecision()).value, delta) << delta;
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
