#include "client/cli/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include "client/cli/errors.h"

namespace dpar {

Interrupt::Interrupt(std::function<void()> on_first) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  pthread_sigmask(SIG_BLOCK, &mask, &old_mask_);
  signals_ = ::signalfd(-1, &mask, SFD_CLOEXEC);
  stop_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this, callback = std::move(on_first)] { Wait(callback); });
}

Interrupt::~Interrupt() {
  const uint64_t one = 1;
  // An eventfd at 0 takes a 1 at once.
  [[maybe_unused]] const ssize_t written = ::write(stop_, &one, sizeof(one));
  thread_.join();
  ::close(signals_);
  ::close(stop_);
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void Interrupt::Wait(const std::function<void()>& on_first) const {
  std::array<pollfd, 2> descriptors = {pollfd{signals_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
  for (bool first = true;; first = false) {
    while (::poll(descriptors.data(), descriptors.size(), -1) < 0) {
    }
    if (descriptors[1].revents != 0) {
      return;
    }
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) {
      return;
    }
    if (!first) {
      ::_exit(kInterrupted);
    }
    on_first();
  }
}

}  // namespace dpar
