// Noise that survives floating point.
//
// The value and the noise z are rounded to a lattice of step g and added as integers. For x on the lattice, x +
// round(z) = round(x + z): the release is post-processing of the ideal mechanism on the rounded value. round(z) is
// drawn exactly (core/random/noise.h). Rounding to the nearest moves each of D coordinates by at most g/2, so it adds
// at most g sqrt(D) to the l2 sensitivity. Truncating one vector that is never negative adds nothing: it stays in the
// ball or box around 0 that bounds it. (Not so for sums of several people's vectors.)
#ifndef DPAR_CORE_RANDOM_LATTICE_H_
#define DPAR_CORE_RANDOM_LATTICE_H_

#include <cstdint>
#include <span>

#include "core/random/random.h"

namespace dpar {

// The largest power of two (scaling is exact) at most noise_scale * 2^-lattice_bits. noise_scale > 0 and finite.
double LatticeStep(double noise_scale, int lattice_bits);
// noise_scale in these steps, exactly: 2^lattice_bits up to twice that.
double StepsPerScale(double noise_scale, int lattice_bits);

// Rounds towards 0 to a multiple of `step`. |value| below 2^52 steps.
double TruncateToLattice(double value, double step);

// The value rounded to the lattice, plus the noise. Total: a value that is not finite counts as 0, and one beyond 2^61
// steps as that bound, which holds for the result too.
double AddNoiseSteps(double value, int64_t noise_steps, double step);

// Replaces every value by its AddNoiseSteps release with Gaussian noise, a multiple of LatticeStep.
void AddLatticeNoise(RandomSource& random, double noise_stddev, int lattice_bits, std::span<double> values);

void AddLatticeLaplace(RandomSource& random, double scale, int lattice_bits, std::span<double> values);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_LATTICE_H_
