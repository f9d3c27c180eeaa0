// Peak memory of training on a sealed graph, measured in a process of its own.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "core/graph/generate.h"
#include "core/graph/sealed_graph.h"
#include "core/graph/testing/child_memory.h"
#include "core/plan/plan.h"
#include "core/plan/plan_event.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/train.h"

namespace dpar {
namespace {

using ::dpar::testing::InChild;
using ::dpar::testing::kMemoryMeansNothing;
using ::dpar::testing::PeakBytes;

constexpr int64_t kNodes = 200'000;
constexpr double kLargestShare = 1.2;        // of the mapped file
constexpr int64_t kBytesPerWeight = 4 * 10;  // ten times the parameters

TEST(TrainMemory, StaysCloseToTheMappedDataset) {
  if (kMemoryMeansNothing) {
    GTEST_SKIP() << "a sanitizer's own memory hides what is measured";
  }
  const std::string path = (std::filesystem::temp_directory_path() / "dpar_train_memory_test.sealed").string();
  const int64_t file_bytes = InChild<int64_t>([&path]() -> int64_t {
    testing::FixedRandom random(1);
    const auto graph =
        GenerateGraph({.nodes = kNodes, .classes = 10, .features = 2000, .features_per_node = 100}, random);
    if (!graph.ok() || !WriteSealedGraph(path, *graph).ok()) {
      return -1;
    }
    return static_cast<int64_t>(std::filesystem::file_size(path));
  });
  ASSERT_GT(file_bytes, 100'000'000);
  v1::TrainingSpec spec;
  spec.set_epsilon(1);
  spec.set_delta(1e-7);
  spec.mutable_options()->set_steps(2);
  const auto plan = MakePlan(spec, {kNodes, 2000, 10});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->has_mean()) << "the plan's whole way is measured";
  const int64_t weights = ParameterCount(*plan, {kNodes, 2000, 10});
  const int64_t peak = InChild<int64_t>([&]() -> int64_t {
    const int64_t before = PeakBytes();
    const auto sealed = SealedGraph::Open(path);
    const auto graph = sealed.ok() ? sealed->View() : sealed.status();
    testing::FixedRandom random(2);
    const bool trained = graph.ok() && Train(*plan, *graph, {.device = "cpu", .threads = 2}, random,
                                             {[] { return true; }, [](TrainingStage, int64_t, int64_t) {}})
                                           .ok();
    return trained ? PeakBytes() - before : -1;
  });
  std::filesystem::remove(path);
  std::printf("peak %.1f MB, file %.1f MB, %.2f of it\n", static_cast<double>(peak) / 1e6,
              static_cast<double>(file_bytes) / 1e6, static_cast<double>(peak) / static_cast<double>(file_bytes));
  EXPECT_GT(peak, file_bytes / 2) << "the features were read";
  EXPECT_LE(static_cast<double>(peak),
            kLargestShare * static_cast<double>(file_bytes) + static_cast<double>(kBytesPerWeight * weights));
}

}  // namespace
}  // namespace dpar
