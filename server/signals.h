#ifndef DPAR_SERVER_SIGNALS_H_
#define DPAR_SERVER_SIGNALS_H_

#include <csignal>
#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace dpar {

// Blocks SIGTERM, SIGINT and SIGHUP here and in later threads, so that only AwaitStop sees them.
sigset_t BlockSignals();

// What is opened again on SIGHUP; a failure leaves it as it was.
struct Reloaded {
  const char* what;
  std::function<absl::Status()> reload;
};

// Until SIGTERM or SIGINT. For the main thread.
void AwaitStop(const sigset_t& signals, const std::vector<Reloaded>& all);

}  // namespace dpar

#endif  // DPAR_SERVER_SIGNALS_H_
