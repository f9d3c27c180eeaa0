// What the server counts and times, for Prometheus. deploy/METRICS.md has the table of them.
//
// Labels come from fixed lists: methods, codes, reasons, stages. Nothing of a request becomes a label.
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

  // `method` is "Service/Method", `code` as in absl::StatusCodeToString, `reason` one of errors.proto.
  void CallBegan(absl::string_view method);
  void CallEnded(absl::string_view method, absl::string_view code, absl::Duration took);
  void AuthenticationFailed(absl::string_view reason);
  void AuditWriteFailed();
  // What was spent could not be marked (server/witness), so nothing was shown.
  void WitnessFailed();

  void StageEnded(const std::string& stage, absl::Duration took);
  // Does nothing for a state that is no end.
  void JobEnded(v1::Job::State state);
  // A refusal (the budget does not admit the job, the lease is lost) is neither a commit nor a failure.
  void LedgerCommitted(LedgerCommit commit, const absl::Status& status, absl::Duration took);

  // What was counted so far.
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

// Runs `transaction`, timed where there are metrics.
absl::Status TimeLedgerCommit(Metrics* metrics, LedgerCommit commit, const std::function<absl::Status()>& transaction);

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_METRICS_H_
