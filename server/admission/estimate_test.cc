#include "server/admission/estimate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "core/plan/structure_work.h"

namespace dpar {
namespace {

constexpr PublicSizes kSizes = {.node_count = 1'000'000, .feature_count = 1000, .class_count = 10};
constexpr int64_t kFile = int64_t{1} << 30;

v1::Plan LinearPlan() {
  v1::Plan plan;
  plan.set_node_sampling_rate(1);
  return plan;
}

v1::Plan StructurePlan(int64_t rows, int64_t top_k) {
  v1::Plan plan = LinearPlan();
  plan.set_method(v1::DPAR_GM);
  plan.set_training_slots(kSizes.node_count);
  plan.mutable_structure()->set_appr_nodes(rows);
  plan.mutable_structure()->set_top_k(top_k);
  plan.mutable_structure()->set_alpha(0.25);
  plan.mutable_structure()->set_rho(1e-4);
  return plan;
}

TEST(MemoryEstimateTest, CountsTheFileTheSlotsAndTheWeights) {
  const int64_t weights = 1001 * 10;
  const int64_t expected = (int64_t{64} << 20) + kFile + 1'000'000 * (60 + 4 * 10) + weights * (12 + 8 * 3);
  EXPECT_EQ(EstimateJobBytes(LinearPlan(), kSizes, kFile, 2), expected);
}

TEST(MemoryEstimateTest, CountsCopiesOfTheData) {
  const int64_t plain = EstimateJobBytes(LinearPlan(), kSizes, kFile, 2);
  v1::Plan evaluated = LinearPlan();
  evaluated.mutable_evaluation();
  EXPECT_EQ(EstimateJobBytes(evaluated, kSizes, kFile, 2), plain + kFile);
  v1::Plan sampled = LinearPlan();
  sampled.set_node_sampling_rate(0.5);
  EXPECT_EQ(EstimateJobBytes(sampled, kSizes, kFile, 2), plain + kFile);
  PublicSizes small = kSizes;
  small.feature_count = 300;
  EXPECT_GT(EstimateJobBytes(LinearPlan(), small, kFile, 2), plain + kFile) << "full batches copy features that fit";
}

TEST(MemoryEstimateTest, CountsRowsOfDpApprAndTheirProducts) {
  const int64_t plain = EstimateJobBytes(LinearPlan(), kSizes, kFile, 2);
  v1::Plan plan = StructurePlan(1000, 9);
  const int64_t scratch = WorkOfStructure(plan, 2).scratch_bytes;
  EXPECT_EQ(scratch, 2 * (10'001 * 320 + 10'000 * 12)) << "two solvers, of up to 1 / rho nodes and edges each";
  EXPECT_EQ(EstimateJobBytes(plan, kSizes, kFile, 2), plain + 1000 * 10 * 48 + scratch);
  plan.set_hidden_size(32);
  v1::Plan hidden = LinearPlan();
  hidden.set_hidden_size(32);
  EXPECT_EQ(EstimateJobBytes(plan, kSizes, kFile, 2) - EstimateJobBytes(hidden, kSizes, kFile, 2),
            1000 * 10 * 48 + 1000 * 10 * 10 / 2 * 8 + scratch);
}

TEST(TimeEstimateTest, GrowsWithStepsRowsAndWeightsAndShrinksWithThreads) {
  constexpr int64_t kSmallFile = int64_t{1} << 24;
  constexpr PublicSizes kSmall = {.node_count = 20'000, .feature_count = 5'000, .class_count = 10};
  v1::Plan plan = LinearPlan();
  plan.set_training_slots(20'000);
  plan.set_sampling_rate(1);
  plan.set_steps(100);
  // Start, reading, and 100 steps over 2^21 entries of 10 classes each and 50,010 weights.
  const double step = 2097152 * (1.7e-9 + 0.06e-9 * 10) + 50'010 * 4.5e-9;
  const absl::Duration one = EstimateJobTime(plan, kSmall, kSmallFile, 1);
  EXPECT_NEAR(absl::ToDoubleSeconds(one), 0.05 + 16777216e-9 + 100 * step, 1e-6);
  EXPECT_NEAR(absl::ToDoubleSeconds(EstimateJobTime(plan, kSmall, kSmallFile, 2)), 0.05 + 16777216e-9 + 50 * step,
              1e-6);
  v1::Plan batches = plan;
  batches.set_sampling_rate(0.01);
  batches.set_batch_size(200);
  EXPECT_LT(EstimateJobTime(batches, kSmall, kSmallFile, 1), one);
  v1::Plan structured = batches;
  structured.set_method(v1::DPAR_GM);
  *structured.mutable_structure() = StructurePlan(1000, 4).structure();
  // DP-APPR ends at the earliest when 1000 rows of 80,000 edges would, at 20 ns each.
  EXPECT_GT(EstimateJobTime(structured, kSmall, kSmallFile, 1),
            EstimateJobTime(batches, kSmall, kSmallFile, 1) + absl::Milliseconds(1600));
  v1::Plan evaluated = plan;
  evaluated.mutable_evaluation();
  EXPECT_GT(EstimateJobTime(evaluated, kSmall, kSmallFile, 1), one);
}

TEST(MemoryEstimateTest, DoesNotOverflow) {
  EXPECT_EQ(EstimateJobBytes(LinearPlan(), kSizes, std::numeric_limits<int64_t>::max(), 2),
            std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace dpar
