// For tests that measure memory: work in a process of its own, and the most that a process held.
#ifndef DPAR_CORE_GRAPH_TESTING_CHILD_MEMORY_H_
#define DPAR_CORE_GRAPH_TESTING_CHILD_MEMORY_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <type_traits>

namespace dpar::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryMeansNothing = true;
#else
inline constexpr bool kMemoryMeansNothing = false;
#endif

// The most memory that this process ever had resident.
int64_t PeakBytes();

// Runs `work` in a child and gives what it returns. What it allocates leaves no trace in this process, so that the next
// child starts with nothing that could be used again without being counted.
template <typename Result>
Result InChild(const std::function<Result()>& work) {
  static_assert(std::is_trivially_copyable_v<Result>);
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    const Result result = work();
    _exit(write(ends[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
  }
  close(ends[1]);
  Result result = {};
  EXPECT_EQ(read(ends[0], &result, sizeof(result)), static_cast<ssize_t>(sizeof(result)));
  close(ends[0]);
  int exit_status = -1;
  EXPECT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
  return result;
}

}  // namespace dpar::testing

#endif  // DPAR_CORE_GRAPH_TESTING_CHILD_MEMORY_H_
