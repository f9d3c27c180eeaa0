#ifndef DPAR_SERVER_SERVICES_STREAM_WATCHDOG_H_
#define DPAR_SERVER_SERVICES_STREAM_WATCHDOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "grpcpp/server_context.h"
#include "server/periodic.h"
#include "server/steady_time.h"

namespace dpar {

// DEADLINE_EXCEEDED / LIMIT_EXCEEDED for max_idle_seconds. For the log; the caller sees a cancelled call.
absl::Status IdleTooLong(absl::Duration patience);

// Cancels streams whose callers sent or took nothing for `patience`: a synchronous Read or Write waits without limit.
// Thread-safe; one thread for all streams. Enter a stream, Touch after every message, and return status() at its end.
class StreamWatchdog {
 public:
  using Clock = std::function<absl::Time()>;

  // `patience` is max_idle_seconds.
  explicit StreamWatchdog(absl::Duration patience, Clock clock = SteadyNow);
  StreamWatchdog(const StreamWatchdog&) = delete;
  StreamWatchdog& operator=(const StreamWatchdog&) = delete;

  class Handle {
   public:
    Handle(StreamWatchdog& watchdog, std::function<void()> cancel);
    ~Handle();
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    // Restarts the patience: after the caller did something, and after long work of the server, which is not idleness.
    void Touch();
    // OK, or IdleTooLong when it cancelled the stream.
    [[nodiscard]] absl::Status status() const;

   private:
    friend class StreamWatchdog;

    StreamWatchdog& watchdog_;
    const std::function<void()> cancel_;
    std::atomic<int64_t> last_;  // microseconds of the clock
    std::atomic<bool> idle_ = false;
  };

  // The handle is destroyed before the context.
  std::unique_ptr<Handle> Enter(grpc::ServerContextBase& context);
  // For anything that `cancel` ends; called at most once, from the watchdog's thread.
  std::unique_ptr<Handle> Enter(std::function<void()> cancel);

  // The thread calls it a few times within the patience.
  void CancelIdle() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const absl::Duration patience_;
  const Clock clock_;
  Mutex mutex_;
  std::set<Handle*> handles_ ABSL_GUARDED_BY(mutex_);
  Periodic looking_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_STREAM_WATCHDOG_H_
