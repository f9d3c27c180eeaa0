// The earliest end of a stage. How long some stages work follows private data, so they end at a public age.
#ifndef DPAR_SERVER_WORKER_EARLIEST_END_H_
#define DPAR_SERVER_WORKER_EARLIEST_END_H_

#include <functional>
#include <utility>

#include "absl/time/time.h"

namespace dpar {

// For one thread.
class EarliestEnd {
 public:
  struct Clock {
    std::function<absl::Duration()> now;  // never goes back
    std::function<void(absl::Duration)> sleep;
  };
  static Clock SteadyClock();

  explicit EarliestEnd(Clock clock = SteadyClock()) : clock_(std::move(clock)), start_(clock_.now()) {}

  // A stage begins.
  void Begin() { start_ = clock_.now(); }

  // Returns once the stage is `age` old, or soon after `keep_going` says no.
  void Await(absl::Duration age, const std::function<bool()>& keep_going) const;

 private:
  const Clock clock_;
  absl::Duration start_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_EARLIEST_END_H_
