#include "core/privacy/composed_loss.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

namespace dpar {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMassError = 0x1p-43;  // relative, of one mechanism: quadrature, weights, splitting
constexpr double kLossError = 0x1p-50;  // of one mechanism, relative to 1 + |loss|
// Relative errors of a transform's coefficients and of raising one to a power, per copy, with a margin.
constexpr double kTransformError = 0x1p-46;
constexpr double kPowerError = 0x1p-48;
constexpr size_t kTailStride = 256;
constexpr double kNegligibleLogPower = -90;  // 20 digits below the transform's own error

// (a + ib)^n by squaring; std::complex multiplication checks for infinities that cannot occur.
std::complex<double> Power(std::complex<double> base, int64_t exponent, double negligible_norm) {
  double a = base.real();
  double b = base.imag();
  if (a * a + b * b < negligible_norm) {
    return 0;
  }
  double real = 1;
  double imaginary = 0;
  for (;; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      const double next = real * a - imaginary * b;
      imaginary = real * b + imaginary * a;
      real = next;
    }
    if (exponent <= 1) {
      return {real, imaginary};
    }
    const double square = a * a - b * b;
    b = 2 * a * b;
    a = square;
  }
}

// Moves atoms to the grid: calls add(cell, tilted mass at the cell, tilted mass at the next), all times e^-log_scale.
template <typename Add>
void ForEachCell(const LossAtoms& atoms, double tilt, double step, double log_scale, const Add& add) {
  const double step_tilt = std::exp(tilt * step);
  const double width = -std::expm1(-step);
  for (size_t i = 0; i < atoms.loss.size(); ++i) {
    const double cell = std::floor(atoms.loss[i] / step);
    const double low = cell * step;
    const double up = std::clamp(-std::expm1(std::min(0.0, low - atoms.loss[i])) / width, 0.0, 1.0);
    const double scaled = atoms.mass[i] * std::exp(tilt * low - log_scale);
    add(cell, scaled * (1 - up), scaled * up * step_tilt);
  }
}

// Losses outside the window wrap around.
void PlaceOnCircle(const LossAtoms& atoms, double log_scale, const LossGrid& grid, absl::Span<double> values) {
  std::fill(values.begin(), values.end(), 0.0);
  const auto size = static_cast<int64_t>(grid.size);
  ForEachCell(atoms, grid.tilt, grid.step, log_scale, [&](double cell, double at, double next) {
    int64_t index = static_cast<int64_t>(cell) % size;
    index += index < 0 ? size : 0;
    values[static_cast<size_t>(index)] += at;
    values[static_cast<size_t>(index + 1 == size ? 0 : index + 1)] += next;
  });
}

double LogMomentOnGrid(const LossAtoms& atoms, double tilt, double step) {
  const double reference = CumulantsAt(atoms, tilt).value;
  double sum = 0;
  ForEachCell(atoms, tilt, step, reference, [&sum](double, double at, double next) { sum += at + next; });
  return reference + std::log(sum);
}

}  // namespace

Cumulants CumulantsAt(const LossAtoms& atoms, double tilt) {
  constexpr size_t kStride = 16;  // the largest exponent to within a few atoms keeps every term finite
  double reference = -kInfinity;
  for (size_t i = 0; i < atoms.loss.size(); i += kStride) {
    if (atoms.mass[i] > 0) {
      reference = std::max(reference, std::log(atoms.mass[i]) + tilt * atoms.loss[i]);
    }
  }
  if (reference == -kInfinity) {
    reference = tilt * (tilt > 0 ? atoms.loss.back() : atoms.loss.front());
  }
  double sum = 0;
  double first = 0;
  double second = 0;
  for (size_t i = 0; i < atoms.loss.size(); ++i) {
    const double term = atoms.mass[i] * std::exp(tilt * atoms.loss[i] - reference);
    sum += term;
    first += term * atoms.loss[i];
    second += term * atoms.loss[i] * atoms.loss[i];
  }
  const double mean = first / sum;
  return {reference + std::log(sum), mean, std::max(0.0, second / sum - mean * mean)};
}

Cumulants CumulantsAt(const std::vector<LossComponent>& components, double tilt) {
  Cumulants total;
  for (const LossComponent& component : components) {
    const Cumulants one = CumulantsAt(component.atoms, tilt);
    const auto count = static_cast<double>(component.count);
    total.value += count * one.value;
    total.mean += count * one.mean;
    total.variance += count * one.variance;
  }
  return total;
}

ComposedLoss::ComposedLoss(const std::vector<LossComponent>& components, const LossGrid& grid)
    : grid_(grid),
      transform_(grid.size),
      tilt_decay_(std::exp(-grid.tilt * grid.step)),
      step_gain_(-std::expm1(-grid.step)) {
  const auto size = static_cast<int64_t>(grid.size);
  start_ = static_cast<size_t>(((grid.first % size) + size) % size);
  Convolve(components);
  BoundErrors(components);
  tails_.resize(grid.size / kTailStride + 1);
  Tail tail;
  for (size_t i = grid.size; i-- > 0;) {
    tail = Down(tail, i);
    if (i % kTailStride == 0) {
      tails_[i / kTailStride] = tail;
    }
  }
}

// Leaves the tilted masses of the composition, times the transform's size, in its values.
void ComposedLoss::Convolve(const std::vector<LossComponent>& components) {
  std::vector<std::complex<double>> product;
  for (const LossComponent& component : components) {
    const auto count = static_cast<double>(component.count);
    const double reference = CumulantsAt(component.atoms, grid_.tilt).value;
    PlaceOnCircle(component.atoms, reference, grid_, transform_.values());
    transform_.Forward();
    const double negligible_norm = std::exp(2 * kNegligibleLogPower / count);
    const absl::Span<std::complex<double>> coefficients = transform_.coefficients();
    const double sum = coefficients[0].real();
    const double scale = 1 / sum;
    for (size_t k = 0; k < coefficients.size(); ++k) {
      coefficients[k] = Power(coefficients[k] * scale, component.count, negligible_norm);
      if (!product.empty()) {
        const std::complex<double> p = product[k];
        const std::complex<double> c = coefficients[k];
        coefficients[k] = {p.real() * c.real() - p.imag() * c.imag(), p.real() * c.imag() + p.imag() * c.real()};
      }
    }
    if (components.size() > 1) {
      product.assign(coefficients.begin(), coefficients.end());
    }
    log_scale_ += count * (reference + std::log(sum));
  }
  transform_.Backward();
}

void ComposedLoss::BoundErrors(const std::vector<LossComponent>& components) {
  double total_count = 0;
  double log_finite = 0;
  double log_tail_moment = 0;
  for (const LossComponent& component : components) {
    const auto count = static_cast<double>(component.count);
    total_count += count;
    log_finite += count * std::log1p(-component.atoms.infinite_mass);
    log_tail_moment += count * LogMomentOnGrid(component.atoms, grid_.tail_tilt, grid_.step);
    const double largest = std::max(std::fabs(component.atoms.loss.front()), std::fabs(component.atoms.loss.back()));
    loss_margin_ += count * kLossError * (1 + largest);
  }
  relative_margin_ = std::expm1(total_count * kMassError);
  rounding_ = kTransformError * std::log2(static_cast<double>(grid_.size)) + kPowerError * total_count;
  const double high = LossAt(grid_.size);
  const double log_above =
      std::min(grid_.tilt > 0 ? log_scale_ - grid_.tilt * high : 0.0, log_tail_moment - grid_.tail_tilt * high);
  infinite_mass_ = -std::expm1(log_finite) + std::exp(log_above);
}

double ComposedLoss::TiltedMass(size_t i) const {
  const size_t index = start_ + i;
  const double value = transform_.values()[index < grid_.size ? index : index - grid_.size];
  return std::max(0.0, value) / static_cast<double>(grid_.size);
}

// delta(l) sums masses times 1 - e^(l - l_j), which for l one step lower is (1 - e^-h) + e^-h times what it was.
ComposedLoss::Tail ComposedLoss::Down(const Tail& tail, size_t i) const {
  const double delta = tilt_decay_ * (step_gain_ * tail.mass + (1 - step_gain_) * tail.delta);
  return {TiltedMass(i) + tilt_decay_ * tail.mass, delta};
}

ComposedLoss::Tail ComposedLoss::TailAt(size_t i) const {
  const size_t checkpoint = (i + kTailStride - 1) / kTailStride;
  const bool known = checkpoint * kTailStride < grid_.size;
  Tail tail = known ? tails_[checkpoint] : Tail();
  for (size_t j = known ? checkpoint * kTailStride : grid_.size; j-- > i;) {
    tail = Down(tail, j);
  }
  return tail;
}

double ComposedLoss::LossAt(size_t i) const {
  return static_cast<double>(grid_.first + static_cast<int64_t>(i)) * grid_.step;
}

ComposedLoss::Finite ComposedLoss::FiniteAt(double adjusted_epsilon) const {
  const double position = std::ceil(adjusted_epsilon / grid_.step) - static_cast<double>(grid_.first);
  if (position < 0 || position >= static_cast<double>(grid_.size)) {
    return {};
  }
  const auto i = static_cast<size_t>(position);
  const double below = std::max(0.0, LossAt(i) - adjusted_epsilon);
  const Tail tail = TailAt(i);
  return {log_scale_ - grid_.tilt * LossAt(i), -std::expm1(-below) * tail.mass + std::exp(-below) * tail.delta,
          rounding_};
}

double ComposedLoss::Delta(double epsilon) const {
  const double adjusted = epsilon - loss_margin_;
  if (adjusted < LossAt(0) - grid_.step) {
    return 1;
  }
  const Finite finite = FiniteAt(adjusted);
  const double scaled = finite.delta + finite.rounding;
  const double mass = scaled > 0 ? std::exp(std::min(0.0, finite.log_scale + std::log(scaled))) : 0;
  return std::min(1.0, (mass + infinite_mass_) * (1 + relative_margin_));
}

double ComposedLoss::RoundingShare(double epsilon) const {
  const Finite finite = FiniteAt(epsilon - loss_margin_);
  return finite.rounding > 0 ? finite.rounding / (finite.rounding + finite.delta) : 0;
}

double ComposedLoss::LowestEpsilon() const { return std::max(0.0, LossAt(0) + loss_margin_); }

double ComposedLoss::SmallestEpsilon(const std::function<double(double)>& limit) const {
  double low = LowestEpsilon();
  double high = std::max(low, LossAt(grid_.size));
  if (Delta(low) <= limit(low)) {
    return low;
  }
  if (Delta(high) > limit(high)) {
    return kInfinity;
  }
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high || high - low < 1e-13 * high) {
      return high;
    }
    (Delta(middle) <= limit(middle) ? high : low) = middle;
  }
}

}  // namespace dpar
