// What the handlers call: the rooms behind them, and nothing else.
#ifndef DPAR_SERVER_SERVICES_ROOMS_H_
#define DPAR_SERVER_SERVICES_ROOMS_H_

#include <atomic>

#include "server/limits.h"
#include "server/services/gate.h"
#include "server/services/stream_limiter.h"
#include "server/services/stream_watchdog.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/uploads/uploads.h"
#include "server/worker/progress.h"

namespace dpar {

// Everything outlives the services.
struct Rooms {
  Database& database;
  const DataDirectory& directory;
  const Limits& limits;
  const Gate& gate;
  Uploads& uploads;
  ProgressBoard& progress;
  StreamLimiter& streams;
  // Ends streams whose callers send or take nothing.
  StreamWatchdog& watchdog;
  // Threads that a job gets where it runs, for the estimate of its memory.
  int job_threads;
  // Set before the server shuts down: streams end with UNAVAILABLE.
  const std::atomic<bool>& stopping;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_ROOMS_H_
