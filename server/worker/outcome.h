// How a job leaves its worker: released, given up, or taken from a worker that is gone. Each is one transaction that
// moves the ledger and the queue together.
//
// Money rules (PRIVACY, sections 6 and 10): posted once, in the transaction that makes the output visible; voided only
// after a cancel, or after an infrastructure failure with its attempts used up, when no output left the trainer; any
// other failure after the data was opened posts the full price.
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

// The key to sign with at this moment; UNAVAILABLE when it cannot be read, and then a finished job waits for it.
using SigningKeySource = std::function<absl::StatusOr<SigningKey>()>;

// What the accountant gives for the job's event, for its certificate; 0 for public data. Cheap for Gaussian events, up
// to some seconds for others, so it is worked out before the release.
absl::StatusOr<double> AccountantEpsilon(const StoredJob& stored);

// The one way out for a model: certificate, posted entry and final state become visible together. CANCELLED, and
// nothing done, when a cancel came first; FAILED_PRECONDITION when the lease is lost. After an error it may be called
// again: a release that took place is found.
absl::Status Release(Database& database, const SigningKeySource& key, const StoredJob& stored, const JobOutput& output,
                     double accountant_epsilon);

// Ends or puts back a job whose attempt gave no output, because of `cause` or because it was stopped; the state it is
// in then. FAILED_PRECONDITION when the lease is lost.
absl::StatusOr<v1::Job::State> GiveUp(Database& database, const StoredJob& stored, const absl::Status& cause,
                                      StopCause stopped, int max_attempts);

// Takes a job from a worker that is gone: puts it back, or ends it when a cancel was requested or its attempts are used
// up; the state it is in then. `orphan` is as it was found; nothing when it has moved on since.
absl::StatusOr<std::optional<v1::Job::State>> TakeBackOrphan(Database& database, const StoredJob& orphan,
                                                             int max_attempts);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_OUTCOME_H_
