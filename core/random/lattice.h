// Noise that survives floating point.
//
// Mechanism: the value is rounded to a lattice of step g, the noise z is rounded to the same lattice, and the two are
// added as integers. For x on the lattice, x + round(z) = round(x + z): the release is post-processing of the ideal
// Gaussian or Laplace mechanism applied to the rounded value. round(z) itself is drawn exactly (core/random/noise.h).
// Rounding to the nearest moves each of D coordinates by at most g/2, so it adds at most g sqrt(D) to the l2
// sensitivity. Where what is noised is one vector that is known not to be negative, truncating it adds nothing: it
// stays in whatever ball or box around 0 bounds it. (Sums of several people's vectors are another matter.)
#ifndef DPAR_CORE_RANDOM_LATTICE_H_
#define DPAR_CORE_RANDOM_LATTICE_H_

#include <cstdint>
#include <span>

#include "core/random/random.h"

namespace dpar {

// The lattice's step: the largest power of two that is at most noise_scale * 2^-lattice_bits. A power of two makes the
// scaling exact. noise_scale > 0 and finite.
double LatticeStep(double noise_scale, int lattice_bits);
// noise_scale in these steps, exactly: 2^lattice_bits up to twice that.
double StepsPerScale(double noise_scale, int lattice_bits);

// The multiple of `step` at the value or next to it on the side of 0. |value| below 2^52 steps.
double TruncateToLattice(double value, double step);

// The value rounded to the lattice, with noise of so many steps (core/random/noise.h). Total: a value that is not
// finite counts as 0, and one beyond 2^61 steps as that bound, which holds for the result too.
double AddNoiseSteps(double value, int64_t noise_steps, double step);

// Replaces every value by its noisy release: a multiple of LatticeStep(noise_stddev, lattice_bits). Values and
// releases are those of AddNoiseSteps.
void AddLatticeNoise(RandomSource& random, double noise_stddev, int lattice_bits, std::span<double> values);

// The same with Laplace noise of this scale.
void AddLatticeLaplace(RandomSource& random, double scale, int lattice_bits, std::span<double> values);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_LATTICE_H_
