// Places where crash tests kill or halt the process; only builds with DPAR_TEST_SEAMS (tests/crash) have them.
#ifndef DPAR_SERVER_SEAM_H_
#define DPAR_SERVER_SEAM_H_

#ifdef DPAR_TEST_SEAMS

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace dpar {

// Kills the process when DPAR_TEST_SEAM names this place; halts it once, until SIGCONT, when DPAR_TEST_HALT does.
inline void PassSeam(absl::string_view name) {
  static std::atomic_flag halted = ATOMIC_FLAG_INIT;
  const char* wanted = std::getenv("DPAR_TEST_SEAM");
  if (wanted != nullptr && name == wanted) {
    std::raise(SIGKILL);
  }
  const char* halt = std::getenv("DPAR_TEST_HALT");
  if (halt != nullptr && name == halt && !halted.test_and_set()) {
    std::raise(SIGSTOP);
  }
}

}  // namespace dpar

#define DPAR_SEAM(name) ::dpar::PassSeam(name)

#else

#define DPAR_SEAM(name) static_cast<void>(0)

#endif

#endif  // DPAR_SERVER_SEAM_H_
