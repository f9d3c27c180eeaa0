// Places where the crash tests end the process as a power cut would, or halt it while they cut something else off. In
// production builds a seam is nothing at all; only the variant that is compiled with DPAR_TEST_SEAMS (tests/crash)
// looks at the environment.
#ifndef DPAR_SERVER_SEAM_H_
#define DPAR_SERVER_SEAM_H_

#ifdef DPAR_TEST_SEAMS

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace dpar {

// Kills the process when DPAR_TEST_SEAM names this place. DPAR_TEST_HALT names a place where it stands still, once,
// until SIGCONT.
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
