// The privacy-loss distribution of a composition, on a uniform grid, by Fourier transform.
//
// Atoms are moved to the grid as in loss_atoms.h, which only adds loss. Independent losses add up, so T copies are a
// T-fold convolution, taken under an exponential tilt: masses m become m e^(t l) / M(t), and t puts the bulk of the
// composition where epsilon is. A transform's rounding errors are relative to the bulk, so deltas far below 2^-53 keep
// their digits, and the window need only span the tilted bulk.
//
// The transform is circular. Loss above the window wraps to its low end and is lost; its mass, at most M(s)^T e^(-s
// high) for every s > 0 (Chernoff), is added to delta. Loss below it wraps to the high end and only raises delta.
#ifndef DPAR_CORE_PRIVACY_COMPOSED_LOSS_H_
#define DPAR_CORE_PRIVACY_COMPOSED_LOSS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/privacy/fourier.h"
#include "core/privacy/loss_atoms.h"

namespace dpar {

struct LossComponent {
  LossAtoms atoms;
  int64_t count = 1;
};

// ln of the moment generating function of the finite losses, with its first two derivatives.
struct Cumulants {
  double value = 0;
  double mean = 0;
  double variance = 0;
};
Cumulants CumulantsAt(const LossAtoms& atoms, double tilt);
Cumulants CumulantsAt(const std::vector<LossComponent>& components, double tilt);

struct LossGrid {
  double tilt = 0;
  double step = 0;
  int64_t first = 0;     // the window starts at first * step
  size_t size = 0;       // and has this many points; a size that is fast to transform
  double tail_tilt = 0;  // s of the bound on what lies above
};

class ComposedLoss {
 public:
  ComposedLoss(const std::vector<LossComponent>& components, const LossGrid& grid);

  // An upper bound on delta at epsilon; 1 below the window.
  [[nodiscard]] double Delta(double epsilon) const;

  // The part of Delta(epsilon) that covers the transform's rounding errors.
  [[nodiscard]] double RoundingShare(double epsilon) const;

  // The smallest epsilon >= 0 in the window with Delta(epsilon) <= limit(epsilon), which never falls; else infinite.
  [[nodiscard]] double SmallestEpsilon(const std::function<double(double)>& limit) const;

  [[nodiscard]] double LowestEpsilon() const;

  // The tilted mass at the window's i-th point; multiply by e^(log_scale - tilt * loss) to undo the tilt.
  [[nodiscard]] double TiltedMass(size_t i) const;
  [[nodiscard]] double log_scale() const { return log_scale_; }
  [[nodiscard]] double infinite_mass() const { return infinite_mass_; }
  // Bound on the sum of rounding errors of the tilted masses.
  [[nodiscard]] double rounding() const { return rounding_; }
  // Bounds on the relative error of finite masses and on the error of losses.
  [[nodiscard]] double relative_margin() const { return relative_margin_; }
  [[nodiscard]] double loss_margin() const { return loss_margin_; }

 private:
  // At a grid point of loss l, in units of e^(log_scale - tilt l): the mass at and above it, and delta there.
  struct Tail {
    double mass = 0;
    double delta = 0;
  };

  void Convolve(const std::vector<LossComponent>& components);
  void BoundErrors(const std::vector<LossComponent>& components);
  // delta at epsilon without the infinite mass: e^log_scale times the sum of the other two, 0 outside the window.
  struct Finite {
    double log_scale = 0;
    double delta = 0;
    double rounding = 0;
  };
  [[nodiscard]] Finite FiniteAt(double adjusted_epsilon) const;

  [[nodiscard]] Tail Down(const Tail& tail, size_t i) const;
  [[nodiscard]] Tail TailAt(size_t i) const;
  [[nodiscard]] double LossAt(size_t i) const;

  LossGrid grid_;
  RealTransform transform_;
  double tilt_decay_;  // e^(-tilt step)
  double step_gain_;   // 1 - e^-step
  size_t start_ = 0;   // where on the circle the window starts
  double log_scale_ = 0;
  double infinite_mass_ = 0;
  double rounding_ = 0;
  double relative_margin_ = 0;  // of masses
  double loss_margin_ = 0;      // of losses
  std::vector<Tail> tails_;     // at every kTailStride-th point
};

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_COMPOSED_LOSS_H_
