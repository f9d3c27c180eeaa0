#include "core/privacy/mixture_renyi.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/types/optional.h"
#include "core/privacy/mixture_loss.h"

namespace dpar {
namespace {

constexpr double kHalfUlp = std::numeric_limits<double>::epsilon() / 2;
constexpr double kLogSqrtTwoPi = 0.91893853320467274178;
constexpr double kPi = 3.14159265358979323846;
// -ln of the quadrature's error, and of what is skipped or cut, relative to the larger of 1 and the integral.
constexpr double kErrorExponent = 64;
constexpr double kSkipExponent = 72;
constexpr double kTailReach = 12;  // kSkipExponent is its square / 2
constexpr double kLargestPlainExponent = 600;
constexpr int64_t kMaxWork = 1'000'000;  // exponentials; beyond, the bound without sampling is taken

// The sum over k >= 2 of (p^k - p) l^k / k!, for |l| and |p l| below 0.05: twelve terms leave 1e-26 of it.
double SmallPowerExcess(double power, double loss) {
  constexpr int kTerms = 13;
  double term = loss;
  double power_term = power * loss;
  double sum = 0;
  for (int k = 2; k <= kTerms; ++k) {
    term *= loss / k;
    power_term *= power * loss / k;
    sum += power_term - power * term;
  }
  return sum;
}

class ScaledSum {
 public:
  void Add(double exponent) {
    if (exponent > largest_) {
      sum_ = sum_ * std::exp(largest_ - exponent) + 1;
      largest_ = exponent;
    } else {
      sum_ += std::exp(exponent - largest_);
    }
  }
  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] double Log() const { return largest_ + std::log(sum_); }

 private:
  double largest_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
};

double LogAddExp(double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b))); }
double LogOnePlusExp(double x) { return LogAddExp(0, x); }

// The step at which the trapezoidal rule's bound is e^-kErrorExponent. `angle` is rows / sigma.
double QuadratureStep(double power, double angle) {
  const double negative = std::max(0.0, -power);
  const double curvature = 1 + negative * angle * angle / 4;
  const double width = std::min(std::sqrt(2 * kErrorExponent / curvature), 0.9 * kPi / angle);
  const double growth = width * width / 2 - negative * std::log(std::cos(angle * width / 2));
  return 2 * kPi * width / (kErrorExponent + growth);
}

double PowerExcess(double power, double loss) {
  constexpr double kSmall = 0.05;
  const double scaled = power * loss;
  if (std::fabs(loss) < kSmall && std::fabs(scaled) < kSmall) {
    return SmallPowerExcess(power, loss);
  }
  return std::max(0.0, std::expm1(scaled) - power * std::expm1(loss));
}

// The integrand's terms peak at 0, at `shift` and between 0 and power * shift, and fall like a Gaussian outside.
struct Range {
  Range(double power, double shift)
      : low(std::min(0.0, power * shift) - kTailReach), high(std::max(shift, power * shift) + kTailReach) {}
  double low;
  double high;
};

// ln of the integral, rounded up, when no exponent can overflow.
double PlainIntegral(const MixtureLoss& loss, double power, const Range& range, double step) {
  double sum = 0;
  for (double index = std::ceil(range.low / step); index * step <= range.high; ++index) {
    const double y = index * step;
    sum += PowerExcess(power, loss(y)) * std::exp(-y * y / 2);
  }
  return std::log(sum * step) - kLogSqrtTwoPi + 1e-13 + 8 * kHalfUlp * kLargestPlainExponent;
}

// The same for exponents of any size. Skips terms far below the largest: the slope of the logarithm of the integrand is
// at most |y| + max(1, |p|) shift. nullopt if that takes too many points.
absl::optional<double> ScaledIntegral(const MixtureLoss& loss, double power, double shift, const Range& range,
                                      double step) {
  const double steepest = std::max(1.0, std::fabs(power)) * shift;
  const double log_power = std::log(std::fabs(power));
  const double log_constant = std::log1p(std::fabs(power));
  // Candidates for the peak, so that terms far below are skipped from the start.
  double known = -std::numeric_limits<double>::infinity();
  for (const double y : {power * shift, shift, 0.0, -1.0, -2.0, -4.0, -8.0}) {
    known = std::max(known, LogPowerExcess(power, loss(y)) - y * y / 2);
  }
  ScaledSum sum;
  double peak = 0;  // the largest exponent's own size, for its rounding
  const int64_t max_points = kMaxWork / (loss.last_row_count() + 1);
  int64_t points = 0;
  for (double index = std::ceil(range.low / step); index * step <= range.high; ++index) {
    if (++points > max_points) {
      return absl::nullopt;
    }
    const double y = index * step;
    const double at = loss(y);
    // The integrand is a sum of three terms, each at most e^envelope / 3.
    const double envelope = std::max({power * at, log_constant, log_power + at}) + 1.1 - y * y / 2;
    const double gap = std::max(known, sum.largest()) - kSkipExponent - envelope;
    if (gap > 0) {
      index += std::floor(gap / (2 * (std::fabs(y) + steepest + std::sqrt(gap))) / step);
      continue;
    }
    const double exponent = LogPowerExcess(power, at) - y * y / 2;
    if (exponent > sum.largest()) {
      peak = std::fabs(power * at) + y * y / 2 + std::fabs(power);
    }
    sum.Add(exponent);
  }
  return sum.Log() + std::log(step) - kLogSqrtTwoPi + 1e-13 + 8 * kHalfUlp * peak;
}

absl::optional<double> LogExcessIntegral(const MixtureLoss& loss, double power, double shift) {
  const Range range(power, shift);
  const double step = QuadratureStep(power, shift);
  const double reach = std::max(-range.low, range.high);
  return std::max(1.0, std::fabs(power)) * shift * (reach + shift) < kLargestPlainExponent
             ? PlainIntegral(loss, power, range, step)
             : ScaledIntegral(loss, power, shift, range, step);
}

}  // namespace

double LogPowerExcess(double power, double loss) {
  constexpr double kLarge = 500;
  const double scaled = power * loss;
  if (std::max(scaled, loss) < kLarge) {
    return std::log(PowerExcess(power, loss));
  }
  if (power > 1) {
    return scaled + std::log1p(-power * std::exp(loss - scaled));
  }
  return scaled > loss ? scaled : loss + std::log(-power + std::exp(std::min(0.0, scaled - loss)));
}

double MixtureRenyi(const RowMixture& mixture, Direction direction, double order) {
  const double power = direction == Direction::kRemove ? order : 1 - order;
  const double shift = static_cast<double>(mixture.rows) / mixture.noise_multiplier;
  const double plain = order * shift * shift / 2 * (1 + 8 * kHalfUlp);
  const absl::optional<double> integral = LogExcessIntegral(MixtureLoss(mixture, 0), power, shift);
  if (!integral.has_value()) {
    return plain;
  }
  // The bounds on quadrature and cuts, for the integrals of the power, of 1 and of |p| e^L.
  const double log_error = -kErrorExponent + 3 + std::log(2 + std::fabs(power)) + std::max(0.0, *integral);
  return std::min(plain, LogOnePlusExp(LogAddExp(*integral, log_error)) / (order - 1) * (1 + 8 * kHalfUlp));
}

}  // namespace dpar
