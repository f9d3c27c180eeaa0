#ifndef DPAR_SERVER_PERIODIC_H_
#define DPAR_SERVER_PERIODIC_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace dpar {

// Calls `step` on its own thread until destroyed; `step` returns how long to rest. Of the standard library, because
// waits of Mutex (core/mutex.h) end by the wall clock, which may be set back.
class Periodic {
 public:
  explicit Periodic(std::function<absl::Duration()> step);
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_PERIODIC_H_
