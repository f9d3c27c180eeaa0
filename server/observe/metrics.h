// Prometheus metrics (deploy/METRICS.md). Labels come from fixed lists (methods, codes, ...), never from a request.
#ifndef DPAR_SERVER_OBSERVE_METRICS_H_
#define DPAR_SERVER_OBSERVE_METRICS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "prometheus/metric_family.h"

namespace dpar {

// The transactions in which prices are reserved, posted and given back.
enum class LedgerCommit {
  kReserve,   // a job is submitted
  kRelease,   // a job's model is released, and its price posted
  kGiveUp,    // an attempt ended without a model: posted, voided or put back
  kTakeBack,  // the same for an attempt whose worker is gone
  kCancel,    // a job is cancelled before it ran
  kOperator,  // a cap is set, or units are debited
};

// Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // `method` is "Service/Method", `code` as in absl::StatusCodeToString, `reason` from errors.proto.
  void CallBegan(absl::string_view method);
  void CallEnded(absl::string_view method, absl::string_view code, absl::Duration took);
  void AuthenticationFailed(absl::string_view reason);
  void AuditWriteFailed();
  // A mark could not be written (server/witness), so nothing was shown.
  void WitnessFailed();

  void StageEnded(const std::string& stage, absl::Duration took);
  // Ignores states that are no end.
  void JobEnded(v1::Job::State state);
  // A refusal (budget exhausted, lease lost) is neither a commit nor a failure.
  void LedgerCommitted(LedgerCommit commit, const absl::Status& status, absl::Duration took);

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

absl::Status TimeLedgerCommit(Metrics* metrics, LedgerCommit commit, const std::function<absl::Status()>& transaction);

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_METRICS_H_
