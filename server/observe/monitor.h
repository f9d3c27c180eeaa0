// What the server shows to operators' tools over plain HTTP, without authentication: /metrics, /livez and /readyz.
#ifndef DPAR_SERVER_OBSERVE_MONITOR_H_
#define DPAR_SERVER_OBSERVE_MONITOR_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_server.h"
#include "server/observe/budget_metrics.h"
#include "server/observe/metrics.h"
#include "server/observe/store_probe.h"
#include "server/periodic.h"
#include "server/store/database.h"

namespace dpar {

// Thread-safe. What is passed in outlives it.
class Monitor {
 public:
  // `marks_written` says whether what is spent can be marked (server/witness); it is asked beside the store.
  Monitor(Database& database, const Metrics& metrics, std::function<bool()> marks_written);

  // Begins to watch the store and to listen; the port.
  absl::StatusOr<int> Start(const std::string& host, int port);
  // From now on the server does its work, or, before it stops, takes no more.
  void Serve() { phase_ = Phase::kServing; }
  void Drain() { phase_ = Phase::kDraining; }

 private:
  enum class Phase { kStarting, kServing, kDraining };

  // From memory, whatever the store does.
  [[nodiscard]] HttpAnswer Answer(const HttpRequest& request) const;
  [[nodiscard]] HttpAnswer ShowMetrics() const;
  [[nodiscard]] HttpAnswer ShowReadiness() const;
  // Reads the budgets' sums, or works out one equivalent epsilon; how long to rest.
  absl::Duration StepBudgets();

  const Metrics& metrics_;
  StoreProbe probe_;
  BudgetMetrics budgets_;
  const std::function<bool()> marks_written_;
  std::atomic<bool> witness_up_ = true;
  std::atomic<Phase> phase_ = Phase::kStarting;
  // For StepBudgets only.
  absl::Time next_accounts_ = absl::InfinitePast();
  absl::Time next_epsilon_ = absl::InfinitePast();
  // Destroyed in the opposite order: no handler and no thread outlives what it uses.
  std::unique_ptr<Periodic> probing_;
  std::unique_ptr<Periodic> budgeting_;
  HttpServer http_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_MONITOR_H_
