// The exact privacy profile of Gaussian mechanisms (Balle and Wang 2018; Dong, Roth and Su 2019).
//
// Neighbours: node removal in zero-out form. A composition, adaptive or not, of Gaussian mechanisms with sensitivity
// s_i and standard deviation sigma_i is mu-GDP with mu = sqrt(sum (s_i / sigma_i)^2). In both directions,
//   delta(eps) = Phi(-eps/mu + mu/2) - e^eps Phi(-eps/mu - mu/2).
#ifndef DPAR_CORE_PRIVACY_GAUSSIAN_H_
#define DPAR_CORE_PRIVACY_GAUSSIAN_H_

#include "absl/status/statusor.h"

namespace dpar {

// Ranges that every public entry checks: epsilon in [kMinEpsilon, kMaxEpsilon], delta in [kMinDelta, 1).
inline constexpr double kMinEpsilon = 1e-3;
inline constexpr double kMaxEpsilon = 100;
inline constexpr double kMinDelta = 1e-15;

// delta(eps) of mu-GDP, to about 1e-12 relative down to the smallest normal double; 0 below. mu > 0, eps >= 0.
absl::StatusOr<double> GaussianDelta(double mu, double epsilon);

// The smallest epsilon >= 0 with GaussianDelta(mu, epsilon) <= delta, rounded up by at most 1e-12 relative (of mu where
// epsilon is below mu / 100, since the profile is flat there). mu > 0, 0 < delta < 1.
absl::StatusOr<double> GaussianEpsilon(double mu, double delta);

// The largest mu that meets (epsilon, delta), rounded down by at most 1e-12 relative. epsilon >= 0, 0 < delta < 1.
// GaussianEpsilon(result, delta) <= epsilon holds, with 1e-14 to spare for the rounding of sensitivity / mu.
absl::StatusOr<double> GaussianMu(double epsilon, double delta);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_GAUSSIAN_H_
