#include "core/plan/structure_work.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/appr/private_rows.h"
#include "core/appr/testing/drawn_rows.h"
#include "core/appr/testing/small_graphs.h"
#include "core/error.h"
#include "core/graph/testing/child_memory.h"
#include "core/plan/plan.h"
#include "core/plan/plan_event.h"

namespace dpar {
namespace {

using ::dpar::testing::InChild;
using ::dpar::testing::kMemoryMeansNothing;
using ::dpar::testing::PeakBytes;

v1::TrainingSpec Spec() {
  v1::TrainingSpec spec;
  spec.set_method(v1::DPAR_GM);
  spec.set_epsilon(1);
  spec.set_delta(1e-5);
  return spec;
}

v1::Plan MustPlan(const v1::TrainingSpec& spec, int64_t nodes) {
  const absl::StatusOr<v1::Plan> plan = MakePlan(spec, {nodes, 20, 3});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(v1::Plan());
}

std::string RefusedField(const v1::TrainingSpec& spec, int64_t nodes) {
  const absl::Status status = MakePlan(spec, {nodes, 20, 3}).status();
  return absl::IsInvalidArgument(status) ? GetErrorInfo(status)->metadata().at("field") : status.ToString();
}

TEST(StructureWork, FollowsFromThePlanAlone) {
  // 70 rows of 2 / (alpha rho) = 80,000 edges, 20 ns each.
  const StructureWork one = WorkOfStructure(MustPlan(Spec(), 100'000), 1);
  EXPECT_NEAR(one.seconds, 70 * 80'000 * 20e-9, 1e-6);
  EXPECT_EQ(one.threads, 1);
  EXPECT_EQ(one.scratch_bytes, 10'001 * 320 + 10'000 * 12);
  const StructureWork four = WorkOfStructure(MustPlan(Spec(), 100'000), 4);
  EXPECT_NEAR(four.seconds, 18 * 80'000 * 20e-9, 1e-6) << "a thread has up to 18 of the rows";
  EXPECT_EQ(four.scratch_bytes, 4 * one.scratch_bytes);
  // Few slots have few edges: 16 N^2 / alpha of them.
  EXPECT_NEAR(WorkOfStructure(MustPlan(Spec(), 20), 1).seconds, 20 * 16 * 400 * 4 * 20e-9, 1e-9);
}

// A row is one thread's: more threads do not end it sooner, so the earliest end must not come sooner either.
TEST(StructureWork, EndsNoEarlierThanOneRowOnOneThread) {
  v1::TrainingSpec spec = Spec();
  spec.mutable_options()->set_appr_nodes(1);
  const v1::Plan plan = MustPlan(spec, 100'000);
  EXPECT_NEAR(WorkOfStructure(plan, 1).seconds, 80'000 * 20e-9, 1e-9);
  EXPECT_EQ(WorkOfStructure(plan, 64).seconds, WorkOfStructure(plan, 1).seconds);
}

TEST(StructureWork, UsesFewerThreadsWhereTheirScratchMemoryWouldBeLarge) {
  v1::TrainingSpec spec = Spec();
  spec.mutable_options()->set_rho(1e-7);
  const StructureWork work = WorkOfStructure(MustPlan(spec, 20'000'000), 64);
  EXPECT_EQ(work.threads, 1);
  EXPECT_EQ(work.scratch_bytes, 10'000'001LL * 320 + 10'000'000LL * 12);
  EXPECT_EQ(WorkOfStructure(MustPlan(Spec(), 20'000'000), 64).threads, 64);
}

TEST(StructureWork, BoundsRhoAndTheNumberOfRows) {
  v1::TrainingSpec spec = Spec();
  spec.mutable_options()->set_rho(1e-12);
  EXPECT_EQ(RefusedField(spec, 2000), "options.rho");
  spec.mutable_options()->set_rho(0.99e-7);
  EXPECT_EQ(RefusedField(spec, 2000), "options.rho");
  spec.mutable_options()->set_rho(1e-7);
  EXPECT_EQ(RefusedField(spec, 2000), "OK");
  // 2 * 10^10 edges in all: 250 rows of 8e7.
  spec.mutable_options()->set_appr_nodes(250);
  EXPECT_EQ(RefusedField(spec, 100'000), "OK");
  spec.mutable_options()->set_appr_nodes(251);
  EXPECT_EQ(RefusedField(spec, 100'000), "options.appr_nodes");
  spec.set_non_private(true);
  spec.clear_epsilon();
  spec.clear_delta();
  EXPECT_EQ(RefusedField(spec, 100'000), "OK") << "without noise the data is public";
}

// A hub that every row reaches: the most that a solver can hold for its rho.
TEST(StructureWork, TheSolversHoldNoMoreThanWasPlanned) {
  if (kMemoryMeansNothing) {
    GTEST_SKIP() << "a sanitizer's own memory hides what is measured";
  }
  constexpr int64_t kNodes = 400'000;
  v1::TrainingSpec spec = Spec();
  spec.mutable_options()->set_rho(1e-7);
  spec.mutable_options()->set_appr_nodes(2);
  for (const v1::Method method : {v1::DPAR_GM, v1::DPAR_EM1}) {
    spec.set_method(method);
    const v1::Plan plan = MustPlan(spec, kNodes);
    const int64_t held = InChild<int64_t>([&]() -> int64_t {
      const Graph graph = testing::Star(kNodes - 1);
      const int64_t before = PeakBytes();
      testing::Drawn(graph, StructureOptions(plan), /*stream=*/1);
      return PeakBytes() - before;
    });
    EXPECT_GT(held, 20'000'000) << "the hub was reached";
    EXPECT_LE(held, WorkOfStructure(plan, 1).scratch_bytes);
  }
}

}  // namespace
}  // namespace dpar
