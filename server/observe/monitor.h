// /metrics, /livez and /readyz over plain HTTP, without authentication.
#ifndef DPAR_SERVER_OBSERVE_MONITOR_H_
#define DPAR_SERVER_OBSERVE_MONITOR_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  // What serving needs beside the store. Shown as dpar_NAME_up; readiness names the first one missing.
  struct Need {
    std::string name;
    std::string help;
    std::function<bool()> met;
  };

  Monitor(Database& database, const Metrics& metrics, std::vector<Need> needs);

  absl::StatusOr<int> Start(const std::string& host, int port);
  // Ready from Serve on, until Drain.
  void Serve() { phase_ = Phase::kServing; }
  void Drain() { phase_ = Phase::kDraining; }

 private:
  enum class Phase { kStarting, kServing, kDraining };

  // Answers from memory, without asking the store.
  [[nodiscard]] HttpAnswer Answer(const HttpRequest& request) const;
  [[nodiscard]] HttpAnswer ShowMetrics() const;
  [[nodiscard]] HttpAnswer ShowReadiness() const;
  // Reads the budgets' sums or computes one equivalent epsilon; returns how long to rest.
  absl::Duration StepBudgets();

  const Metrics& metrics_;
  StoreProbe probe_;
  BudgetMetrics budgets_;
  const std::vector<Need> needs_;
  std::vector<std::atomic<bool>> missing_;
  bool on_loopback_ = false;
  std::atomic<Phase> phase_ = Phase::kStarting;
  absl::Time next_accounts_ = absl::InfinitePast();
  absl::Time next_epsilon_ = absl::InfinitePast();
  // Destroyed in reverse order: no handler or thread outlives what it uses.
  std::unique_ptr<Periodic> probing_;
  std::unique_ptr<Periodic> budgeting_;
  HttpServer http_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_MONITOR_H_
