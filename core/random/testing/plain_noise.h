// Noise in plain doubles, as one might draw it: fast, and porous in its low bits and tails. Tests and benchmarks
// compare the exact samplers with it; no production target links it.
//
// Every draw starts from 64 uniform bits, mapped to (0, 1] in steps of 2^-64 near 0 and 2^-53 near 1. So a normal
// radius above 9.42 and an exponential above 44.37 never occur.
#ifndef DPAR_CORE_RANDOM_TESTING_PLAIN_NOISE_H_
#define DPAR_CORE_RANDOM_TESTING_PLAIN_NOISE_H_

#include <span>

#include "core/random/random.h"

namespace dpar::testing {

// Independent standard normals by Box-Muller, the radius from 64 bits and the angle from 53.
void FillGaussian(RandomSource& random, std::span<double> out);

// Independent standard exponentials: density e^-x.
void FillExponential(RandomSource& random, std::span<double> out);

// Independent standard Gumbel variables: -log of an exponential, with distribution function exp(-e^-x).
void FillGumbel(RandomSource& random, std::span<double> out);

// Independent Laplace variables of scale 1: density e^-|x| / 2.
void FillLaplace(RandomSource& random, std::span<double> out);

}  // namespace dpar::testing

#endif  // DPAR_CORE_RANDOM_TESTING_PLAIN_NOISE_H_
