#include "core/privacy/gaussian.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHalfUlp = std::numeric_limits<double>::epsilon() / 2;
constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kLogSqrtTwoPi = 0.91893853320467274178;

constexpr double kComplementBelow = -1;  // below it delta > 0.68, best known through its complement
constexpr double kLowestA = -10;         // 1 - delta < 1e-21 for every mu
constexpr double kHighestA = 100;        // delta <= Q(a) < exp(-5000)
// Relative error of D and of the normal distribution function as computed here (measured: 2e-15).
constexpr double kProfileMargin = 2e-14;
constexpr double kUseMargin = 0x1p-46;  // for roundings between a returned value and its use

// D(a, m) = M(a) - M(a + m) = integral over t > 0 of exp(-a t - t^2/2) (1 - exp(-m t)), with M = Q / phi the Mills
// ratio of the normal distribution; D(a, infinity) = M(a). For a >= -1. The integrand is positive, so nothing cancels.
// Trapezoids after t = scale exp(u - exp(-u)), where it falls double-exponentially: error e^(-pi^2/2/step) < 1e-20.
double MillsDifference(double a, double m) {
  constexpr double kStep = 0.1;
  constexpr int kFirst = -45;
  constexpr int kLast = 45;
  const double scale = 1 / (1 + std::max(a, 0.0));
  double sum = 0;
  for (int k = kFirst; k <= kLast; ++k) {
    const double u = k * kStep;
    const double decay = std::exp(-u);
    const double t = scale * std::exp(u - decay);
    sum += std::exp(-t * (a + t / 2)) * -std::expm1(-m * t) * t * (1 + decay);
  }
  return sum * kStep;
}

// ln delta, for a >= kComplementBelow. With a = eps/mu - mu/2, b = a + mu and phi(a) = e^eps phi(b), delta = Q(a) -
// e^eps Q(b) = phi(a) (M(a) - M(b)).
double LogDelta(double mu, double a) { return -a * a / 2 - kLogSqrtTwoPi + std::log(MillsDifference(a, mu)); }

// 1 - delta = Phi(a) + phi(a) M(b), for a < kComplementBelow, where eps >= 0 means b >= 1.
double DeltaComplement(double mu, double a) {
  const double density = std::exp(-a * a / 2 - kLogSqrtTwoPi);
  return std::erfc(-a * kSqrtHalf) / 2 + density * MillsDifference(a + mu, kInfinity);
}

// Whether delta at (mu, a) is at most `delta` despite a relative error of kProfileMargin and an error of `a_error` in
// a. The derivatives in a of ln delta and, below kComplementBelow, of ln(1 - delta) are at most 2 (|a| + 1).
bool MeetsDelta(double mu, double a, double a_error, double delta) {
  if (a == kInfinity || a - a_error > kHighestA) {
    return true;
  }
  const double margin = kProfileMargin + a_error * 2 * (std::fabs(a) + 1);
  if (a < kComplementBelow) {
    return a > kLowestA && DeltaComplement(mu, a) * (1 - margin) >= 1 - delta;
  }
  const double target = std::log(delta);
  const double log_rounding = 4 * kHalfUlp * (std::fabs(target) + a * a);
  return LogDelta(mu, a) + margin + log_rounding <= target;
}

double ErrorOfA(double mu, double epsilon) { return 4 * kHalfUlp * (epsilon / mu + mu / 2); }

double DeltaOf(double mu, double epsilon) {
  const double a = epsilon / mu - mu / 2;
  if (a < kComplementBelow) {
    return 1 - DeltaComplement(mu, a);
  }
  return a > kHighestA ? 0 : std::exp(LogDelta(mu, a));
}

// The smallest a in [-mu/2, infinity) that meets delta; -mu/2 does not. Unlike epsilon, a does not cancel.
double SmallestA(double mu, double delta) {
  double low = std::max(-mu / 2, kLowestA);
  double high = std::sqrt(-2 * std::log(delta)) + 1;  // delta(a) <= Q(a) <= exp(-a^2/2)/2
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) {
      return high;
    }
    (MeetsDelta(mu, middle, 0, delta) ? high : low) = middle;
  }
}

double EpsilonOf(double mu, double delta) {
  if (MeetsDelta(mu, -mu / 2, 0, delta)) {
    return 0;
  }
  const double a = SmallestA(mu, delta);
  double epsilon = mu * (a + mu / 2) + 4 * kHalfUlp * mu * (std::fabs(a) + mu / 2);
  double step = std::max(epsilon * 2 * kHalfUlp, std::numeric_limits<double>::denorm_min());
  while (DeltaOf(mu, epsilon) > delta) {
    epsilon += step;
    step *= 2;
  }
  return epsilon;
}

bool MuMeets(double mu, double epsilon, double delta) {
  return MeetsDelta(mu, epsilon / mu - mu / 2, ErrorOfA(mu, epsilon), delta);
}

// Halves the gap in the exponent first, to keep the relative precision of any mu.
double Between(double low, double high) {
  return high > 2 * low ? std::sqrt(low) * std::sqrt(high) : low + (high - low) / 2;
}

}  // namespace

absl::StatusOr<double> GaussianDelta(double mu, double epsilon) {
  DPAR_RETURN_IF_ERROR(ValidatePositive("mu", mu));
  DPAR_RETURN_IF_ERROR(ValidateRange("epsilon", epsilon, 0, std::numeric_limits<double>::max()));
  return DeltaOf(mu, epsilon);
}

absl::StatusOr<double> GaussianEpsilon(double mu, double delta) {
  DPAR_RETURN_IF_ERROR(ValidatePositive("mu", mu));
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", delta));
  constexpr double kLargestMu = 1e150;
  if (mu > kLargestMu) {
    return InvalidField("mu", "mu is so large that epsilon is not finite");
  }
  return EpsilonOf(mu, delta);
}

absl::StatusOr<double> GaussianMu(double epsilon, double delta) {
  DPAR_RETURN_IF_ERROR(ValidateRange("epsilon", epsilon, 0, std::numeric_limits<double>::max()));
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", delta));
  double low = delta;                                    // meets: delta(mu, eps) <= delta(mu, 0) <= 0.4 mu
  double high = 2 * -kLowestA + 2 * std::sqrt(epsilon);  // there a <= kLowestA
  while (true) {
    const double middle = Between(low, high);
    if (middle <= low || middle >= high) {
      break;
    }
    (MuMeets(middle, epsilon, delta) ? low : high) = middle;
  }
  double mu = low * (1 - kUseMargin);
  double step = mu * kUseMargin;
  while (EpsilonOf(mu, delta) > epsilon) {
    mu -= step;
    step *= 2;
  }
  return mu * (1 - kUseMargin);
}

}  // namespace dpar
