#include "core/privacy/published_rivals.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dpar {
namespace {

TEST(PublishedGap, OfFullBatchesIsTheClosedFormOfGaussians) {
  GapPipeline pipeline;
  pipeline.max_degree = 100;
  pipeline.hops = 3;
  pipeline.aggregation_noise = 200;
  pipeline.sampling_rate = 1;
  pipeline.noise_multiplier = 40;
  pipeline.steps = 50;
  constexpr double kDelta = 1e-4;
  const double square = 3 * 100.0 / (200 * 200) + 2 * 50 / (40.0 * 40);
  const double exact = square / 2 + std::sqrt(2 * square * std::log(1 / kDelta));
  const auto epsilon = PublishedEpsilon(pipeline, kDelta);
  ASSERT_TRUE(epsilon.ok()) << epsilon.status();
  EXPECT_NEAR(*epsilon, exact, 1e-3 * exact) << "orders are a grid";
  EXPECT_GE(*epsilon, exact * (1 - 1e-12));
}

TEST(PublishedGap, ChargesSquareRootOfTheDegreeAndNotTheOwnRow) {
  GapPipeline pipeline = {4, 1, 2, 0.1, 1e6, 1};
  const double epsilon = *PublishedEpsilon(pipeline, 1e-4);
  EXPECT_NEAR(epsilon, 0.5 + std::sqrt(2 * std::log(1e4)), 1e-2 * epsilon) << "mu is sqrt(4) / 2";
}

TEST(PublishedSage, OfAFullBatchIsAGaussianOfAllTerms) {
  SagePipeline pipeline = {5, 100, 100, 120, 10};
  // mu = sqrt(10) 2 * 6 / 120.
  const double square = 10 * 0.1 * 0.1;
  double best = 1e9;
  for (double order = 1.01; order < 500; order *= 1.001) {
    best =
        std::min(best, order * square / 2 + std::log1p(-1 / order) - (std::log(1e-4) + std::log(order)) / (order - 1));
  }
  EXPECT_NEAR(*PublishedEpsilon(pipeline, 1e-4), best, 1e-3 * best);
}

// multiterm_dpsgd_privacy_accountant of the released code, in Python with scipy.stats.hypergeom and the orders of
// RenyiOrders(); its noise multiplier is this one over 2 (D + 1).
TEST(PublishedSage, IsThatOfTheReleasedCode) {
  EXPECT_NEAR(*PublishedEpsilon(SagePipeline{5, 1000, 100, 24, 100}, 1e-4), 3.4151420079, 1e-6);
  EXPECT_NEAR(*PublishedEpsilon(SagePipeline{20, 5000, 500, 168, 1000}, 1e-5), 4.4482295051, 1e-6);
  EXPECT_NEAR(*PublishedEpsilon(SagePipeline{1, 50, 7, 10, 30}, 1e-3), 2.3695419973, 1e-6);
}

TEST(PublishedRivals, RefuseWhatIsOutOfRange) {
  EXPECT_EQ(PublishedEpsilon(GapPipeline{0, 1, 1, 1, 1, 1}, 1e-4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PublishedEpsilon(GapPipeline{1, 1, 0, 1, 1, 1}, 1e-4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PublishedEpsilon(GapPipeline{1, 1, 1, 1, 0, 1}, 1e-4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PublishedEpsilon(SagePipeline{1, 10, 11, 1, 1}, 1e-4).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PublishedEpsilon(SagePipeline{1, 10, 1, 1, 1}, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dpar
