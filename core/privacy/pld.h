// Epsilon and delta from privacy-loss distributions: an upper bound of a given tightness.
//
// Survey each mechanism with coarse atoms, find the tilt (the saddle point of the tight Renyi conversion), choose the
// grid, and compose once on it (composed_loss.h). A grid of step h adds at most T (tilt + 1) h^2 / 12 to the epsilon of
// T copies, since moving mass within a cell raises the cumulant at t by t (t + 1) h^2 / 12 on average.
//
// Composing n points takes O(n log n) time and 16 n bytes. Measured for q = 0.01 and sigma = 1, n is about 10^5 up to T
// = 10^4, then grows fivefold for every factor of 10 in T, up to its limit.
#ifndef DPAR_CORE_PRIVACY_PLD_H_
#define DPAR_CORE_PRIVACY_PLD_H_

#include <cstddef>
#include <functional>

#include "core/privacy/flat_event.h"

namespace dpar {

// The discretisation error aimed at is fraction * min(epsilon, 5 + epsilon / 8), with at most 2^23 grid points. With a
// smallest_step, the grid is no finer than that or a twentieth of the spread of one mechanism's loss, and the error
// accordingly larger.
struct PldPrecision {
  double fraction = 4e-6;
  double smallest_step = 0;
};

struct PldBound {
  double value = 0;                 // epsilon or delta, never below the truth; infinite or 1 if nothing is known
  double step = 0;                  // of the grid
  size_t points = 0;                // of the grid
  double tilt = 0;                  // the saddle point: how delta falls with epsilon
  double discretisation_error = 0;  // in epsilon, to first order
};

// Epsilon at delta, 0 < delta < 1, in one direction. PldDelta at it, with the same precision, is at most delta, unless
// rounding leaves it no bound (a sample beside something else, at a delta below 1e-12).
PldBound PldEpsilon(const FlatEvent& event, Direction direction, double delta, const PldPrecision& precision);

// The smallest epsilon with delta(epsilon) <= limit(epsilon), for a limit that grows with epsilon. `delta` is about the
// limit there; it decides how tight the bound is, not whether it holds.
PldBound PldEpsilon(const FlatEvent& event, Direction direction, double delta, const PldPrecision& precision,
                    const std::function<double(double)>& limit);

// Delta at epsilon >= 0, in one direction.
PldBound PldDelta(const FlatEvent& event, Direction direction, double epsilon, const PldPrecision& precision);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_PLD_H_
