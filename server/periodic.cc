#include "server/periodic.h"

#include <chrono>
#include <utility>

namespace dpar {

Periodic::Periodic(std::function<absl::Duration()> step)
    : thread_([this, step = std::move(step)] {
        std::unique_lock lock(mutex_);
        while (!stopping_) {
          lock.unlock();
          const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(step());
          lock.lock();
          stop_.wait_until(lock, end, [this] { return stopping_; });
        }
      }) {}

Periodic::~Periodic() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

}  // namespace dpar
