// Clocks, memory and flags that benchmarks share.
#ifndef DPAR_TESTS_BENCHMARK_MEASURE_H_
#define DPAR_TESTS_BENCHMARK_MEASURE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dpar {

// Processor time of this process, and time of a steady clock, in seconds.
double CpuSeconds();
double WallSeconds();
// What the work takes by the clock.
double SecondsOf(const std::function<void()>& work, double (*clock)() = CpuSeconds);

// The largest resident memory that this process had.
double PeakBytes();

// Runs the work in a process of its own, so that its peak memory is its own too. False when it failed.
bool InChild(const std::function<void()>& work);

// --data DIR, --largest NODES, --scratch DIR.
struct BenchmarkFlags {
  std::string data = "../shared/data";
  std::string scratch = "/tmp";
  int64_t largest = 0;
};
// Nothing, after a line of usage, when the arguments are others.
std::optional<BenchmarkFlags> ReadFlags(const std::string& program, const std::vector<std::string>& arguments,
                                        int64_t smallest, int64_t default_largest);

}  // namespace dpar

#endif  // DPAR_TESTS_BENCHMARK_MEASURE_H_
