#ifndef DPAR_CLIENT_CLI_INTERRUPT_H_
#define DPAR_CLIENT_CLI_INTERRUPT_H_

#include <signal.h>

#include <functional>
#include <thread>

namespace dpar {

// The first SIGINT calls `on_first` in a thread of its own; the second ends the process at once with exit code 130.
// Make it before other threads, which must not take the signal either.
class Interrupt {
 public:
  explicit Interrupt(std::function<void()> on_first);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  void Wait(const std::function<void()>& on_first) const;

  sigset_t old_mask_{};
  int signals_ = -1;
  int stop_ = -1;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_INTERRUPT_H_
