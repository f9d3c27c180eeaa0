// What the handlers call: the parts behind them, and nothing else.
#ifndef DPAR_SERVER_SERVICES_SERVICE_PARTS_H_
#define DPAR_SERVER_SERVICES_SERVICE_PARTS_H_

#include <atomic>
#include <functional>
#include <string>

#include "server/limits.h"
#include "server/observe/metrics.h"
#include "server/services/gate.h"
#include "server/services/stream_limiter.h"
#include "server/services/stream_watchdog.h"
#include "server/services/task_line.h"
#include "server/services/watch_hub.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/uploads/uploads.h"
#include "server/witness/witness.h"

namespace dpar {

// Everything outlives the services.
struct ServiceParts {
  Database& database;
  const DataDirectory& directory;
  const Limits& limits;
  const Gate& gate;
  // Asked before anything leaves that was paid for.
  Witness& witness;
  Uploads& uploads;
  StreamLimiter& streams;
  StreamLimiter& watches;
  // Ends streams whose callers send or take nothing.
  StreamWatchdog& watchdog;
  WatchHub& hub;
  // Where calls on gRPC's callback API authenticate.
  TaskLine& admissions;
  // Threads that a job gets where it runs, for the estimate of its memory.
  int job_threads;
  // Set before the server shuts down: long work for callers ends.
  const std::atomic<bool>& stopping;
  // Counts what the ledger and the queue do; may be missing.
  Metrics* metrics = nullptr;
  // Told of jobs that are refused, with the tenant, the dataset and why; may be missing.
  std::function<void(const std::string& tenant, const std::string& dataset, const std::string& why)> refused = {};
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_SERVICE_PARTS_H_
