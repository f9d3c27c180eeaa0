#ifndef DPAR_SERVER_STEADY_TIME_H_
#define DPAR_SERVER_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace dpar {

// For periods and deadlines inside a process: a clock that nobody sets. Its zero means nothing, so it is never stored.
inline absl::Time SteadyNow() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace dpar

#endif  // DPAR_SERVER_STEADY_TIME_H_
