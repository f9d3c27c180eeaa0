// Slows down and counts callers with invalid tokens. The first failures of an address in a minute are answered at once;
// later ones wait. Each wait holds a server thread, so the number of waits is limited and failures beyond it get
// UNAVAILABLE at once. Valid tokens never come here, so they are never slowed.
#ifndef DPAR_SERVER_AUTH_FAILURE_BRAKE_H_
#define DPAR_SERVER_AUTH_FAILURE_BRAKE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/mutex.h"

namespace dpar {

struct FailureBrakeOptions {
  int64_t free_failures = 10;  // of one address in a minute, answered at once
  absl::Duration delay = absl::Seconds(1);
  int64_t max_delayed = 16;      // at the same time
  size_t max_addresses = 4'096;  // counted one by one; further ones are counted as if they were one
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

// The address in grpc::ServerContext::peer() without its port; of IPv6 the first 64 bits, which one holder controls.
std::string PeerAddress(absl::string_view peer);

// Metadata key in the UNAVAILABLE that replaces a failure: the failure's own reason.
inline constexpr char kInsteadOf[] = "instead_of";

// Thread-safe.
class FailureBrake {
 public:
  explicit FailureBrake(FailureBrakeOptions options = {}) : options_(std::move(options)) {}

  // Counts a failure and returns when it may be answered: with `failure`, or with UNAVAILABLE / SERVER_UNAVAILABLE
  // (kInsteadOf) when too many wait already or this one may not wait.
  absl::Status Slow(const std::string& address, const absl::Status& failure, absl::Time now, bool may_wait = true);

  [[nodiscard]] int64_t failures() const { return failures_; }
  [[nodiscard]] size_t addresses() const;

 private:
  struct Count {
    absl::Time start;
    int64_t failures = 0;
  };

  bool Excessive(const std::string& address, absl::Time now);
  bool StartDelay();
  void EndDelay();

  const FailureBrakeOptions options_;
  std::atomic<int64_t> failures_ = 0;
  mutable Mutex mutex_;
  std::map<std::string, Count> counts_ ABSL_GUARDED_BY(mutex_);
  int64_t delayed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_FAILURE_BRAKE_H_
