#ifndef DPAR_SERVER_PERIODIC_H_
#define DPAR_SERVER_PERIODIC_H_

#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace dpar {

// Calls `step` on its own thread until destroyed; `step` returns how long to rest.
class Periodic {
 public:
  explicit Periodic(std::function<absl::Duration()> step);
  ~Periodic();
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

 private:
  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_PERIODIC_H_
