// The parts that handlers use. They outlive the services.
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
  StreamWatchdog& watchdog;
  WatchHub& hub;
  TaskLine& admissions;
  // Threads of a job, for its memory estimate.
  int job_threads;
  // Set before the server shuts down: long work for callers ends.
  const std::atomic<bool>& stopping;
  // May be null, as may `refused`, which is told of refused jobs.
  Metrics* metrics = nullptr;
  std::function<void(const std::string& tenant, const std::string& dataset, const std::string& why)> refused = {};
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_SERVICE_PARTS_H_
