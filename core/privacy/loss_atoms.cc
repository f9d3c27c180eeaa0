#include "core/privacy/loss_atoms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "core/privacy/mixture_loss.h"

namespace dpar {
namespace {

constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;
constexpr double kSqrtHalf = 0.70710678118654752440;

// Four-point Gauss-Legendre on [0, 1]. Over 1/50 standard deviation the ratio of densities at distance y from a centre
// is at most e^(y/50), so the relative error is below 6e-10 (y/50)^8: 1e-14 at y = 12.
constexpr std::array<double, 4> kNodes = {0.06943184420297371239, 0.33000947820757186760, 0.66999052179242813240,
                                          0.93056815579702628761};
constexpr std::array<double, 4> kNodeWeights = {0.17392742256872692869, 0.32607257743127307131, 0.32607257743127307131,
                                                0.17392742256872692869};
constexpr double kLargestLossStep = 0.5;  // of one interval, for the same reason

double UpperTail(double y) { return std::erfc(y * kSqrtHalf) / 2; }

// z with UpperTail(z) <= tail_mass.
double TailBound(double tail_mass) { return std::sqrt(std::max(0.0, -2 * std::log(2 * tail_mass))); }

// Splits an interval's P-mass between its ends. `excess` is p - e^a q.
void Split(double mass, double excess, double low_loss, double high_loss, double& low_mass, double& high_mass) {
  const double width = -std::expm1(low_loss - high_loss);
  const double up = width > 0 ? std::min(mass, excess / width) : mass;
  high_mass += up;
  low_mass += mass - up;
}

// Cuts outcomes y in [low, high] into equal intervals; loss is monotone in y. log_density is P's, without 1/sqrt(2 pi).
template <typename Loss, typename LogDensity>
LossAtoms CutOutcomes(double low, double high, double step, bool increasing, const Loss& loss,
                      const LogDensity& log_density) {
  const auto intervals = static_cast<size_t>(std::ceil((high - low) / step));
  const double width = (high - low) / static_cast<double>(intervals);
  LossAtoms atoms;
  atoms.step = width;
  atoms.loss.resize(intervals + 1);
  atoms.mass.assign(intervals + 1, 0.0);
  for (size_t i = 0; i <= intervals; ++i) {
    atoms.loss[i] = loss(low + width * static_cast<double>(i));
  }
  for (size_t i = 0; i < intervals; ++i) {
    const size_t below = increasing ? i : i + 1;
    const size_t above = increasing ? i + 1 : i;
    double mass = 0;
    double excess = 0;
    for (size_t node = 0; node < kNodes.size(); ++node) {
      const double y = low + width * (static_cast<double>(i) + kNodes[node]);
      const double node_loss = loss(y);
      const double node_mass = kNodeWeights[node] * std::exp(log_density(y, node_loss));
      mass += node_mass;
      excess -= node_mass * std::expm1(std::min(0.0, atoms.loss[below] - node_loss));
    }
    const double scale = width * kInverseSqrtTwoPi;
    Split(mass * scale, excess * scale, atoms.loss[below], atoms.loss[above], atoms.mass[below], atoms.mass[above]);
  }
  if (!increasing) {
    std::reverse(atoms.loss.begin(), atoms.loss.end());
    std::reverse(atoms.mass.begin(), atoms.mass.end());
  }
  return atoms;
}

double IntervalStep(double step, double largest_slope) {
  return std::min({step, kLargestIntervalStep, kLargestLossStep / largest_slope});
}

// Atoms of a loss in (-range, range) with P-density `density` e^(l/2), and P-masses at the two ends.
LossAtoms ExponentialAtoms(double range, double density, double bottom, double top, double step) {
  const auto count = static_cast<size_t>(std::max(1.0, std::ceil(2 / step)));
  const double width = 2 * range / static_cast<double>(count);
  LossAtoms atoms;
  atoms.step = width / range;
  atoms.loss.resize(count + 1);
  atoms.mass.assign(count + 1, 0.0);
  for (size_t i = 0; i <= count; ++i) {
    atoms.loss[i] = i == count ? range : -range + width * static_cast<double>(i);
  }
  const double sinh_quarter = std::sinh(width / 4);
  for (size_t i = 0; i < count; ++i) {
    const double left = std::exp(atoms.loss[i] / 2);
    const double mass = 2 * density * left * std::expm1(width / 2);
    const double excess = 8 * density * left * sinh_quarter * sinh_quarter;
    Split(mass, excess, atoms.loss[i], atoms.loss[i + 1], atoms.mass[i], atoms.mass[i + 1]);
  }
  atoms.mass.front() += bottom;
  atoms.mass.back() += top;
  return atoms;
}

}  // namespace

LossAtoms GaussianAtoms(double mu, double step, double tail_mass) {
  const double reach = TailBound(tail_mass);
  const auto loss = [mu](double y) { return mu * (y - mu / 2); };
  // exp(mu (y - mu/2) - y^2/2) = exp(-(y - mu)^2/2), without the cancellation.
  const auto log_density = [mu](double y, double) { return -(y - mu) * (y - mu) / 2; };
  LossAtoms atoms = CutOutcomes(mu - reach, mu + reach, IntervalStep(step, mu), /*increasing=*/true, loss, log_density);
  atoms.mass.front() += UpperTail(reach);
  atoms.infinite_mass = UpperTail(reach);
  return atoms;
}

LossAtoms MixtureAtoms(const RowMixture& mixture, Direction direction, double step, double tail_mass) {
  const MixtureLoss mixture_loss(mixture, tail_mass);
  const double reach = TailBound(tail_mass);
  const double last_shift = mixture_loss.mu() * static_cast<double>(mixture_loss.last_row_count());
  const double interval = IntervalStep(step, last_shift);
  LossAtoms atoms;
  if (direction == Direction::kRemove) {
    const auto log_density = [](double y, double loss) { return loss - y * y / 2; };
    atoms = CutOutcomes(-reach, last_shift + reach, interval, /*increasing=*/true, mixture_loss, log_density);
    atoms.infinite_mass = UpperTail(reach) + mixture_loss.dropped_weight();
  } else {
    const auto loss = [&mixture_loss](double y) { return -mixture_loss(y); };
    const auto log_density = [](double y, double) { return -y * y / 2; };
    atoms = CutOutcomes(-reach, reach, interval, /*increasing=*/false, loss, log_density);
    atoms.infinite_mass = UpperTail(reach);
  }
  atoms.mass.front() += UpperTail(reach);
  return atoms;
}

double MixtureIntervals(const RowMixture& mixture, double step, double tail_mass) {
  const double last_shift = static_cast<double>(mixture.rows) / mixture.noise_multiplier;
  return (last_shift + 2 * TailBound(tail_mass)) / IntervalStep(step, last_shift);
}

double GaussianIntervals(double mu, double tail_mass) {
  return mu > 0 ? 2 * TailBound(tail_mass) / IntervalStep(kLargestIntervalStep, mu) : 0;
}

LossAtoms LaplaceAtoms(double epsilon, double step) {
  return ExponentialAtoms(epsilon, std::exp(-epsilon / 2) / 4, std::exp(-epsilon) / 2, 0.5, step);
}

LossAtoms SelectionAtoms(double range, double step) {
  return ExponentialAtoms(range, std::exp(-range / 2) / (-2 * std::expm1(-range)), 0, 0, step);
}

}  // namespace dpar
