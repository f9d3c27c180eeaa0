// Locks. Abseil's, except under thread sanitizer: it cannot see into Debian's Abseil, which is compiled without it, and
// would take guarded data for unguarded. There, locks of the standard library stand in, with the same meaning.
// The build says which, not the compiler: a program that is checked itself uses an installed SDK that is not.
#ifndef DPAR_CORE_MUTEX_H_
#define DPAR_CORE_MUTEX_H_

#ifndef DPAR_THREAD_SANITIZER

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace dpar {

using Mutex = absl::Mutex;
using MutexLock = absl::MutexLock;
using Condition = absl::Condition;
using Notification = absl::Notification;

}  // namespace dpar

#else

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace dpar {

// Of a bool, or of something that is called without arguments; both outlive it.
class Condition {
 public:
  explicit Condition(const bool* value)
      : what_(value), holds_([](const void* what) { return *static_cast<const bool*>(what); }) {}
  template <typename Callable>
  explicit Condition(const Callable* callable)
      : what_(callable), holds_([](const void* what) ABSL_NO_THREAD_SAFETY_ANALYSIS {  // Await has the lock
          return (*static_cast<const Callable*>(what))();
        }) {}

  [[nodiscard]] bool Eval() const { return holds_(what_); }

 private:
  const void* what_;
  bool (*holds_)(const void* what);
};

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  // Any change under the lock may be what somebody waits for.
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    changed_.notify_all();
    mutex_.unlock();
  }
  void Await(const Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    changed_.wait(mutex_, [&condition] { return condition.Eval(); });
  }
  bool AwaitWithTimeout(const Condition& condition, absl::Duration timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    const auto holds = [&condition] { return condition.Eval(); };
    if (timeout == absl::InfiniteDuration()) {
      changed_.wait(mutex_, holds);
      return true;
    }
    return changed_.wait_for(mutex_, absl::ToChronoNanoseconds(timeout), holds);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class Notification {
 public:
  void Notify() {
    const MutexLock lock(&mutex_);
    notified_ = true;
  }
  [[nodiscard]] bool HasBeenNotified() const {
    const MutexLock lock(&mutex_);
    return notified_;
  }
  void WaitForNotification() const { WaitForNotificationWithTimeout(absl::InfiniteDuration()); }
  bool WaitForNotificationWithTimeout(absl::Duration timeout) const {
    const MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(Condition(&notified_), timeout);
  }

 private:
  mutable Mutex mutex_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace dpar

#endif

#endif  // DPAR_CORE_MUTEX_H_
