// Ends streams whose callers have fallen silent, so that they hold neither a thread nor a place.
#ifndef DPAR_SERVER_SERVICES_STREAM_WATCHDOG_H_
#define DPAR_SERVER_SERVICES_STREAM_WATCHDOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"

namespace dpar {

// DEADLINE_EXCEEDED / LIMIT_EXCEEDED for max_idle_seconds, the end of a stream whose caller sent or took nothing for as
// long. It goes to the log; the caller, if it is there at all, sees a cancelled call.
absl::Status IdleTooLong(absl::Duration patience);

// Thread-safe, with one thread of its own for all streams. A synchronous stream waits in Read or Write for as long as
// its caller pleases; this cancels the call from outside, and the wait ends.
//
//   const std::unique_ptr<StreamWatchdog::Handle> idle = watchdog.Enter(*context);
//   while (reader.Read(&message)) {
//     idle->Touch();
//     ...
//   }
//   DPAR_RETURN_IF_ERROR(idle->status());
class StreamWatchdog {
 public:
  using Clock = std::function<absl::Time()>;

  // `patience` is max_idle_seconds.
  explicit StreamWatchdog(absl::Duration patience, Clock clock = absl::Now);
  ~StreamWatchdog();
  StreamWatchdog(const StreamWatchdog&) = delete;
  StreamWatchdog& operator=(const StreamWatchdog&) = delete;

  // One stream, watched until this is destroyed.
  class Handle {
   public:
    Handle(StreamWatchdog& watchdog, std::function<void()> cancel);
    ~Handle();
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    // The caller did something: its patience begins anew. Also to be called after work of the server's own that may
    // have taken long, which is not the caller's idleness.
    void Touch();
    // OK, or IdleTooLong when the stream was cancelled for it.
    [[nodiscard]] absl::Status status() const;

   private:
    friend class StreamWatchdog;

    StreamWatchdog& watchdog_;
    const std::function<void()> cancel_;
    std::atomic<int64_t> last_;  // microseconds since 1970
    std::atomic<bool> idle_ = false;
  };

  // The handle must go before the context does.
  std::unique_ptr<Handle> Enter(grpc::ServerContextBase& context);
  // The same for anything that `cancel` ends. It is called at most once, from the watchdog's thread.
  std::unique_ptr<Handle> Enter(std::function<void()> cancel);

  // Cancels what is idle now. The thread does so a few times within the patience.
  void CancelIdle() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration patience_;
  const Clock clock_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Handle*> handles_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_STREAM_WATCHDOG_H_
