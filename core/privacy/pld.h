// Epsilon and delta from privacy-loss distributions: an upper bound that is as tight as asked for.
//
// The steps: survey each mechanism with coarse atoms, find the tilt (the saddle point of the tight Renyi conversion),
// and from it the grid: T copies on a grid of step h have at most T (tilt + 1) h^2 / 12 more epsilon than without it,
// since moving mass within a cell of width h raises the cumulant at t by t (t + 1) h^2 / 12 on average. Most of
// the error asked for goes to that grid, the rest to the atoms. Then compose once on that grid (composed_loss.h).
//
// Time and memory: composing takes O(n log n) time and 16 n bytes for a grid of n points. Measured for q = 0.01 and
// sigma = 1, n is about 10^5 up to T = 10^4 and then grows fivefold for every factor of 10 in T, up to its limit.
#ifndef DPAR_CORE_PRIVACY_PLD_H_
#define DPAR_CORE_PRIVACY_PLD_H_

#include <cstddef>
#include <functional>

#include "core/privacy/flat_event.h"

namespace dpar {

// How close a bound is asked to be: the discretisation error in epsilon aimed at is fraction * min(epsilon, 5 +
// epsilon / 8), as far as that takes no more than 2^23 grid points. With a smallest_step, the grid is no finer than
// that, or a twentieth of the spread of one mechanism's loss, and the error as much larger.
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

// Epsilon at delta, 0 < delta < 1, in one direction. PldDelta at it, with the same precision, is at most
// delta, unless that finds nothing because of rounding (a sample beside something else, at a delta below 1e-12).
PldBound PldEpsilon(const FlatEvent& event, Direction direction, double delta, const PldPrecision& precision);

// The same with a limit on delta that grows with epsilon: the smallest epsilon with delta(epsilon) <= limit(epsilon).
// `delta` is about what the limit is there; it decides how tight the bound is, not whether it holds.
PldBound PldEpsilon(const FlatEvent& event, Direction direction, double delta, const PldPrecision& precision,
                    const std::function<double(double)>& limit);

// Delta at epsilon >= 0, in one direction.
PldBound PldDelta(const FlatEvent& event, Direction direction, double epsilon, const PldPrecision& precision);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_PLD_H_
