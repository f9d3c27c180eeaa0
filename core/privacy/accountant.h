// Epsilon at a delta and delta at an epsilon, sound for every event and for each direction of the neighbour relation.
//
// Gaussians have an exact formula (gaussian.h). Everything else goes through privacy-loss distributions (pld.h). Events
// with selections, or with a sample beside something else, also go through Renyi divergences (renyi.h). The smaller
// bound counts: both hold, and the choice depends on parameters only.
//
// A node-sampled event at rate q, with the inner event's profile delta(eps) in that direction:
//   removal   eps' = ln(1 + q (e^eps - 1)),         delta' = q delta(eps)
//   addition  eps' = x - ln(q + (1-q) e^x),          delta' = q delta(x) / (q + (1-q) e^x).
#ifndef DPAR_CORE_PRIVACY_ACCOUNTANT_H_
#define DPAR_CORE_PRIVACY_ACCOUNTANT_H_

#include "absl/status/statusor.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/pld.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

// Epsilon at delta, 0 < delta < 1, the larger of both directions; EventDelta(event, result) <= delta holds.
// INVALID_ARGUMENT for an event that is not valid.
absl::StatusOr<double> EventEpsilon(const v1::PrivacyEvent& event, double delta);
absl::StatusOr<double> EventEpsilon(const FlatEvent& event, double delta);
absl::StatusOr<double> EventEpsilon(const v1::PrivacyEvent& event, double delta, Direction direction);

// Delta at epsilon >= 0, the larger of both directions.
absl::StatusOr<double> EventDelta(const v1::PrivacyEvent& event, double epsilon);
absl::StatusOr<double> EventDelta(const v1::PrivacyEvent& event, double epsilon, const PldPrecision& precision);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_ACCOUNTANT_H_
