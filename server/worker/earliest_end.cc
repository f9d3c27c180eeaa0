#include "server/worker/earliest_end.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"

namespace dpar {
namespace {

// So that a cancel is seen within it.
constexpr absl::Duration kLongestSleep = absl::Milliseconds(50);

}  // namespace

EarliestEnd::Clock EarliestEnd::SteadyClock() {
  return {[] { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }, absl::SleepFor};
}

void EarliestEnd::Await(absl::Duration age, const std::function<bool()>& keep_going) const {
  for (absl::Duration left = start_ + age - clock_.now(); left > absl::ZeroDuration() && keep_going();
       left = start_ + age - clock_.now()) {
    clock_.sleep(std::min(left, kLongestSleep));
  }
}

}  // namespace dpar
