#include "server/periodic.h"

#include <utility>

namespace dpar {

Periodic::Periodic(std::function<absl::Duration()> step)
    : thread_([this, step = std::move(step)] {
        while (!stop_.WaitForNotificationWithTimeout(step())) {
        }
      }) {}

Periodic::~Periodic() {
  stop_.Notify();
  thread_.join();
}

}  // namespace dpar
