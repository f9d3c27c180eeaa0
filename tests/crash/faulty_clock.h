// A wall clock that a test sets under a running server.
#ifndef DPAR_TESTS_CRASH_FAULTY_CLOCK_H_
#define DPAR_TESTS_CRASH_FAULTY_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "tests/end_to_end/process.h"

namespace dpar::crash {

// As far ahead of the true time as it is set, for every process that is started with its environment.
class FaultyClock {
 public:
  explicit FaultyClock(absl::Duration ahead = absl::ZeroDuration());
  ~FaultyClock();
  FaultyClock(const FaultyClock&) = delete;
  FaultyClock& operator=(const FaultyClock&) = delete;

  [[nodiscard]] e2e::Environment EnvironmentFor() const;
  void Set(absl::Duration ahead) { *ahead_ = absl::ToInt64Nanoseconds(ahead); }

 private:
  const e2e::TemporaryDirectory directory_;
  std::atomic<int64_t>* ahead_ = nullptr;
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_FAULTY_CLOCK_H_
