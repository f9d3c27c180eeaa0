// Continuous noise. The low bits of what is drawn here are porous: values that leave the process are rounded to a
// lattice first (core/random/lattice.h), and selections argue their own precision.
//
// Every draw starts from 64 uniform bits, mapped to (0, 1] in steps of 2^-64 near 0 and 2^-53 near 1. So what Fill...
// draws has these errors: an exponential above 44.37 never occurs (mass 2^-64), a Laplace magnitude above 43.67 (mass
// 2^-63); exponentials near 0 come in steps of 2^-53, none below 2^-54. Logarithms are within 2^-50 of themselves,
// those of Gumbel variables near 0 within 2^-50. Time is linear in what is drawn; memory is
// constant.
#ifndef DPAR_CORE_RANDOM_NOISE_H_
#define DPAR_CORE_RANDOM_NOISE_H_

#include <span>

#include "core/random/random.h"

namespace dpar {

// Independent standard normals by Box-Muller, the radius from 64 bits and the angle from 53. The sampler's own error:
// radii above 9.42 never occur (mass 2^-64 a pair), radii are further apart than 2^-k, k up to 43, only in a tail of
// mass about 2^(k-64), and angles and radii are rounded to doubles.
void FillGaussian(RandomSource& random, std::span<double> out);

// Independent standard exponentials: density e^-x.
void FillExponential(RandomSource& random, std::span<double> out);

// One standard exponential with full relative precision at both ends: 2^-64 to 44.37.
double Exponential(RandomSource& random);

// Independent standard Gumbel variables: -log of an exponential, with distribution function exp(-e^-x).
void FillGumbel(RandomSource& random, std::span<double> out);

// Independent Laplace variables of scale 1: density e^-|x| / 2.
void FillLaplace(RandomSource& random, std::span<double> out);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_NOISE_H_
