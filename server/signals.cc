#include "server/signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "spdlog/spdlog.h"

namespace dpar {
namespace {

// The main thread's id is the process id; it waits in sigwait.
void SendToMainThread(int signal) { syscall(SYS_tgkill, getpid(), getpid(), signal); }

}  // namespace

// OpenBLAS starts threads before main() that do not block them: the handler keeps a signal during start or stop from
// ending the process there.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  struct sigaction action = {};
  action.sa_handler = SendToMainThread;
  action.sa_mask = signals;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  return signals;
}

void AwaitStop(const sigset_t& signals, const std::vector<Reloaded>& all) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
    for (const Reloaded& one : all) {
      if (const absl::Status done = one.reload(); !done.ok()) {
        spdlog::error("{} stays as it was on SIGHUP: {}", one.what, std::string(done.message()));
      } else {
        spdlog::info("{} was opened again on SIGHUP", one.what);
      }
    }
  }
  spdlog::info("stopping on {}", signal == SIGTERM ? "SIGTERM" : "SIGINT");
}

}  // namespace dpar
