#include "server/admission/estimate.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "core/graph/generate.h"
#include "core/graph/sealed_graph.h"
#include "core/plan/structure_work.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

constexpr PublicSizes kSizes = {.node_count = 1'000'000, .feature_count = 1000, .class_count = 10};
constexpr SizeBounds kBounds = {.edges = 30'000'000, .feature_entries = 100'000'000};
// Offsets, labels, edges from both ends, columns and values; and the rest of each section's last page.
constexpr int64_t kFile = 7 * 4096 + 16 + 1'000'000 * 20 + 30'000'000 * 8 + 100'000'000 * 8;

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
  EXPECT_EQ(EstimateJobBytes(LinearPlan(), kSizes, kBounds, 2), expected);
}

TEST(MemoryEstimateTest, CommonGraphsWithDefaultBoundsTakeAFewHundredMegabytes) {
  const auto megabytes = [](const PublicSizes& sizes) {
    const SizeBounds bounds = DefaultSizeBounds(sizes, {400'000'000, 2'000'000'000});
    return (EstimateJobBytes(LinearPlan(), sizes, bounds, 2) + 500'000) / 1'000'000;
  };
  EXPECT_EQ(megabytes({2'995, 2'879, 7}), 91) << "Cora-ML";
  EXPECT_EQ(megabytes({18'333, 6'805, 15}), 215) << "Coauthor-CS";
  EXPECT_EQ(megabytes({34'493, 8'415, 5}), 338) << "Coauthor-Physics";
  EXPECT_LT(megabytes({22'470, 4'714, 4}), 250) << "MUSAE Facebook";
  EXPECT_LT(megabytes({1'000'000, 10'000, 10}), 3'000) << "a million nodes, wide and sparse";
}

// What is sealed is never larger than what is counted for it, at most by the ends of seven pages smaller.
TEST(MemoryEstimateTest, CountsASealedFileAtItsBounds) {
  testing::FixedRandom random(1);
  const Graph graph = GenerateGraph({.nodes = 700, .features = 50}, random).value();
  const std::string path = ::testing::TempDir() + "/estimate_test.sealed";
  ASSERT_TRUE(WriteSealedGraph(path, graph).ok());
  const auto actual = static_cast<int64_t>(std::filesystem::file_size(path));
  const SizeBounds bounds = {graph.edge_count(), static_cast<int64_t>(graph.features.columns.size())};
  v1::Plan sampled = LinearPlan();
  sampled.set_node_sampling_rate(0.5);  // one copy of the file more
  const int64_t counted =
      EstimateJobBytes(sampled, graph.sizes, bounds, 2) - EstimateJobBytes(LinearPlan(), graph.sizes, bounds, 2);
  EXPECT_LE(actual, counted);
  EXPECT_GT(actual, counted - 7 * 4096);
  std::filesystem::remove(path);
}

TEST(MemoryEstimateTest, CountsCopiesOfTheData) {
  const int64_t plain = EstimateJobBytes(LinearPlan(), kSizes, kBounds, 2);
  v1::Plan evaluated = LinearPlan();
  evaluated.mutable_evaluation();
  EXPECT_EQ(EstimateJobBytes(evaluated, kSizes, kBounds, 2), plain + kFile);
  v1::Plan sampled = LinearPlan();
  sampled.set_node_sampling_rate(0.5);
  EXPECT_EQ(EstimateJobBytes(sampled, kSizes, kBounds, 2), plain + kFile);
  PublicSizes small = kSizes;
  small.feature_count = 300;
  EXPECT_GT(EstimateJobBytes(LinearPlan(), small, kBounds, 2), plain + kFile) << "full batches copy features that fit";
}

TEST(MemoryEstimateTest, CountsRowsOfDpApprAndTheirProducts) {
  const int64_t plain = EstimateJobBytes(LinearPlan(), kSizes, kBounds, 2);
  v1::Plan plan = StructurePlan(1000, 9);
  const int64_t scratch = WorkOfStructure(plan, 2).scratch_bytes;
  EXPECT_EQ(scratch, 2 * (10'001 * 320 + 10'000 * 12)) << "two solvers, of up to 1 / rho nodes and edges each";
  EXPECT_EQ(EstimateJobBytes(plan, kSizes, kBounds, 2), plain + 1000 * 10 * 48 + scratch);
  plan.set_hidden_size(32);
  v1::Plan hidden = LinearPlan();
  hidden.set_hidden_size(32);
  EXPECT_EQ(EstimateJobBytes(plan, kSizes, kBounds, 2) - EstimateJobBytes(hidden, kSizes, kBounds, 2),
            1000 * 10 * 48 + 1000 * 10 * 10 / 2 * 8 + scratch);
}

TEST(TimeEstimateTest, GrowsWithStepsRowsAndWeightsAndShrinksWithThreads) {
  constexpr SizeBounds kFew = {.edges = 200'000, .feature_entries = 2'000'000};
  constexpr PublicSizes kSmall = {.node_count = 20'000, .feature_count = 5'000, .class_count = 10};
  v1::Plan plan = LinearPlan();
  plan.set_training_slots(20'000);
  plan.set_sampling_rate(1);
  plan.set_steps(100);
  // Start, reading, and 100 steps over 2,000,000 entries of 10 classes each and 50,010 weights.
  const double reading = 1e-9 * (7 * 4096 + 16 + 20'000 * 20 + 200'000 * 8 + 2'000'000 * 8);
  const double step = 2'000'000 * (1.7e-9 + 0.06e-9 * 10) + 50'010 * 4.5e-9;
  const absl::Duration one = EstimateJobTime(plan, kSmall, kFew, 1);
  EXPECT_NEAR(absl::ToDoubleSeconds(one), 0.05 + reading + 100 * step, 1e-6);
  EXPECT_NEAR(absl::ToDoubleSeconds(EstimateJobTime(plan, kSmall, kFew, 2)), 0.05 + reading + 50 * step, 1e-6);
  v1::Plan batches = plan;
  batches.set_sampling_rate(0.01);
  batches.set_batch_size(200);
  EXPECT_LT(EstimateJobTime(batches, kSmall, kFew, 1), one);
  v1::Plan structured = batches;
  structured.set_method(v1::DPAR_GM);
  *structured.mutable_structure() = StructurePlan(1000, 4).structure();
  // DP-APPR ends at the earliest when 1000 rows of 80,000 edges would, at 20 ns each.
  EXPECT_GT(EstimateJobTime(structured, kSmall, kFew, 1),
            EstimateJobTime(batches, kSmall, kFew, 1) + absl::Milliseconds(1600));
  v1::Plan evaluated = plan;
  evaluated.mutable_evaluation();
  EXPECT_GT(EstimateJobTime(evaluated, kSmall, kFew, 1), one);
}

TEST(MemoryEstimateTest, DoesNotOverflow) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(EstimateJobBytes(LinearPlan(), kSizes, {kLargest, kLargest}, 2), kLargest);
}

}  // namespace
}  // namespace dpar
