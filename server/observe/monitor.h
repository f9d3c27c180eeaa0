// What the server shows to operators' tools over HTTP: /metrics, /livez and /readyz. And where the operator's page is
// served, over TLS.
#ifndef DPAR_SERVER_OBSERVE_MONITOR_H_
#define DPAR_SERVER_OBSERVE_MONITOR_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "prometheus/metric_family.h"
#include "server/observe/budget_metrics.h"
#include "server/observe/http_server.h"
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
  // Answers what comes to the same port over TLS from now on, with this certificate and key in PEM; until EndPage,
  // which returns once nothing of it runs any more.
  absl::Status ServePage(const std::string& certificate_pem, const std::string& key_pem,
                         HttpServer::TlsHandler handler) {
    return http_.HandleTls(certificate_pem, key_pem, std::move(handler));
  }
  void EndPage() { http_.EndTls(); }
  // From now on the server does its work, or, before it stops, takes no more.
  void Serve() { phase_ = Phase::kServing; }
  void Drain() { phase_ = Phase::kDraining; }

 private:
  enum class Phase { kStarting, kServing, kDraining };

  [[nodiscard]] HttpAnswer ShowMetrics(const HttpRequest& request) const;
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
