#include "tests/benchmark/measure.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace dpar {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double SecondsOf(const std::function<void()>& work, double (*clock)()) {
  const double start = clock();
  work();
  return clock() - start;
}

double PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

bool InChild(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

std::optional<BenchmarkFlags> ReadFlags(const std::string& program, const std::vector<std::string>& arguments,
                                        int64_t smallest, int64_t default_largest) {
  BenchmarkFlags flags;
  flags.largest = default_largest;
  bool understood = arguments.size() % 2 == 0;
  for (size_t i = 0; understood && i < arguments.size(); i += 2) {
    const std::string& value = arguments[i + 1];
    if (arguments[i] == "--data") {
      flags.data = value;
    } else if (arguments[i] == "--scratch") {
      flags.scratch = value;
    } else {
      understood = arguments[i] == "--largest" && absl::SimpleAtoi(value, &flags.largest) && flags.largest >= smallest;
    }
  }
  if (!understood) {
    absl::PrintF("usage: %s [--data DIR] [--largest NODES, from %d] [--scratch DIR]\n", program, smallest);
    return std::nullopt;
  }
  return flags;
}

}  // namespace dpar
