// Slows down those who try tokens that are not valid, and counts them.
//
// The first failures of an address in a minute are answered at once; later ones wait before they are answered. Only so
// many wait at the same time, because each holds a thread of the server: those beyond are told to come back, at once.
// Good tokens never come here, so they are never slowed, whatever else comes from their address.
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
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace dpar {

struct FailureBrakeOptions {
  int64_t free_failures = 10;  // of one address in a minute, answered at once
  absl::Duration delay = absl::Seconds(1);
  int64_t max_delayed = 16;      // at the same time
  size_t max_addresses = 4'096;  // counted one by one; further ones are counted as if they were one
  // Returns after so long.
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

// Whom a failure is counted against: the address in grpc::ServerContext::peer() without its port. Of an IPv6 address
// the first 64 bits, since whoever has one has all that begin so.
std::string PeerAddress(absl::string_view peer);

// In the metadata of the UNAVAILABLE that stands for a failure: the failure's own reason.
inline constexpr char kInsteadOf[] = "instead_of";

// Thread-safe.
class FailureBrake {
 public:
  explicit FailureBrake(FailureBrakeOptions options = {}) : options_(std::move(options)) {}

  // Counts a failure from `address`, and returns once it may be answered: with `failure`, or with UNAVAILABLE /
  // SERVER_UNAVAILABLE (kInsteadOf) when too many wait already or this one may not.
  absl::Status Slow(const std::string& address, const absl::Status& failure, absl::Time now, bool may_wait = true);

  // All failures since the start.
  [[nodiscard]] int64_t failures() const { return failures_; }
  // How many addresses are remembered.
  [[nodiscard]] size_t addresses() const;

 private:
  // Failures of one address since `start`.
  struct Count {
    absl::Time start;
    int64_t failures = 0;
  };

  // Whether this failure of the address is one too many.
  bool Excessive(const std::string& address, absl::Time now);
  bool StartDelay();
  void EndDelay();

  const FailureBrakeOptions options_;
  std::atomic<int64_t> failures_ = 0;
  mutable absl::Mutex mutex_;
  std::map<std::string, Count> counts_ ABSL_GUARDED_BY(mutex_);
  int64_t delayed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_FAILURE_BRAKE_H_
