// How a job leaves its worker: released, given up, or taken back, each in one transaction over ledger and queue.
// Money rules (docs/privacy.md, section 5): posted once, in the transaction that makes the output visible; voided only
// when no output left the trainer, after a failure that came before the data was opened, or after a cancel, kFreeVoids
// times for a budget if the data was opened. Any other failure after the data was opened posts the full price, also an
// infrastructure failure with all attempts used: a crash may follow from the data.
#ifndef DPAR_SERVER_WORKER_OUTCOME_H_
#define DPAR_SERVER_WORKER_OUTCOME_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/certificate/signing_key.h"
#include "server/queue/queue.h"
#include "server/store/database.h"
#include "server/worker/attempt.h"

namespace dpar {

// The key to sign with now. While it is UNAVAILABLE, a finished job waits.
using SigningKeySource = std::function<absl::StatusOr<SigningKey>()>;

// The accountant's epsilon for the certificate; 0 for public data. Takes up to seconds, so it precedes the release.
absl::StatusOr<double> AccountantEpsilon(const StoredJob& stored);

// The only way out for a model: certificate, post and final state become visible together. CANCELLED when a cancel came
// first, FAILED_PRECONDITION when the lease is lost. Can be repeated after an error: finds a release that took place.
absl::Status Release(Database& database, const SigningKeySource& key, const StoredJob& stored, const JobOutput& output,
                     double accountant_epsilon);

// An attempt without output.
struct FailedAttempt {
  absl::Status cause;
  StopCause stopped = StopCause::kNone;
  bool opened = true;  // Attempt::opened
};

// Ends or requeues a job; returns its state. A damaged file takes its dataset out of service. FAILED_PRECONDITION when
// the lease is lost.
absl::StatusOr<v1::Job::State> GiveUp(Database& database, const StoredJob& stored, const FailedAttempt& attempt,
                                      int max_attempts);

// Requeues a dead worker's job, or ends it after a cancel or its last attempt; returns its state. `orphan` is as found;
// nothing when the job has moved on.
absl::StatusOr<std::optional<v1::Job::State>> TakeBackOrphan(Database& database, const StoredJob& orphan,
                                                             int max_attempts);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_OUTCOME_H_
