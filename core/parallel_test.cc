#include "core/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace dpar {
namespace {

using ::testing::Each;

TEST(ParallelFor, VisitsEveryIndexOnce) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> visits(1000);
    ParallelFor(1000, threads, [&](int, int64_t index) { ++visits[static_cast<size_t>(index)]; });
    EXPECT_THAT(std::vector<int>(visits.begin(), visits.end()), Each(1)) << threads << " threads";
  }
}

TEST(ParallelFor, GivesAWorkerToOneThreadAtATime) {
  std::vector<std::atomic<int>> busy(3);
  std::atomic<bool> shared = false;
  ParallelFor(10'000, 3, [&](int worker, int64_t) {
    if (busy[static_cast<size_t>(worker)]++ != 0) {
      shared = true;
    }
    --busy[static_cast<size_t>(worker)];
  });
  EXPECT_FALSE(shared);
}

TEST(ParallelFor, NothingToDoCallsNothing) {
  ParallelFor(0, 4, [](int, int64_t) { FAIL(); });
}

TEST(ParallelFor, AnExceptionReachesTheCallerAndEndsTheWork) {
  std::atomic<int64_t> visited = 0;
  EXPECT_THROW(ParallelFor(1'000'000'000, 2,
                           [&](int, int64_t index) {
                             ++visited;
                             if (index == 100) {
                               throw std::runtime_error("enough");
                             }
                           }),
               std::runtime_error);
  EXPECT_LT(visited, 1'000'000'000);
}

}  // namespace
}  // namespace dpar
