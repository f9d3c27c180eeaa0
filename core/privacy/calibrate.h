// The smallest noise that meets (epsilon, delta), scaled as a whole: noise x multiplies that of every Gaussian and
// Laplace mechanism and divides every selection's range. With events at noise 1, x is the noise multiplier.
#ifndef DPAR_CORE_PRIVACY_CALIBRATE_H_
#define DPAR_CORE_PRIVACY_CALIBRATE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

inline constexpr double kMaxTargetEpsilon = 1e4;

v1::PrivacyEvent ScaleNoise(const v1::PrivacyEvent& event, double x);

// The smallest x with EventEpsilon(event_at(x), delta) <= epsilon, rounded up by at most 2e-6 relative (1e-12 if the
// event is Gaussian) beyond the accountant's own error. epsilon must fall as x rises. 0 if delta is at least the
// probability that the node is sampled at all; never between 0 and kMinNoiseMultiplier.
// PRIVACY_UNREACHABLE if no noise does. INVALID_ARGUMENT unless 0 < epsilon <= kMaxTargetEpsilon and 0 < delta < 1.
absl::StatusOr<double> CalibrateNoise(const std::function<v1::PrivacyEvent(double)>& event_at, double epsilon,
                                      double delta);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_CALIBRATE_H_
