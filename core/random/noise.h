// Gaussian and Laplace noise, rounded exactly to whole steps of a lattice.
//
// A draw is a function of uniform numbers of infinitely many bits. The bits drawn first leave an interval of values,
// and evaluating the function in doubles widens it by a proven bound (docs/privacy.md). If the interval lies in one
// cell of the lattice, that cell is the result. If not, more bits are drawn and intervals of higher precision evaluated
// (core/random/interval.h) until it does. So every cell has its ideal probability, in the tails too.
//
// Time is linear in what is drawn; about one pair of normals in 2^18 needs more bits. Memory is constant.
#ifndef DPAR_CORE_RANDOM_NOISE_H_
#define DPAR_CORE_RANDOM_NOISE_H_

#include <array>
#include <cstdint>
#include <span>

#include "core/random/lazy_uniform.h"
#include "core/random/random.h"

namespace dpar {

inline constexpr int64_t kLargestNoiseSteps = int64_t{1} << 62U;  // larger noise comes out as this

// Each out[i] is round(steps_per_deviation z), with z an independent standard normal.
void FillGaussianSteps(RandomSource& random, double steps_per_deviation, std::span<int64_t> out);

// Each out[i] is round(steps_per_scale z), with z an independent Laplace variable of scale 1.
void FillLaplaceSteps(RandomSource& random, double steps_per_scale, std::span<int64_t> out);

// A direction: which eighth of a turn, as two signs and an exchange of coordinates, and where in it.
struct LazyTurn {
  // From a word: the signs of both coordinates, the exchange, and in the lowest 52 bits the place in the eighth.
  explicit LazyTurn(uint64_t word);
  LazyTurn(uint64_t eighth_bits, LazyUniform place_in_eighth);

  // The absolute value of this coordinate (0 or 1) of the point on the unit circle.
  Interval EncloseCoordinate(size_t coordinate, int precision, RandomSource& random);

  std::array<bool, 2> is_negative;
  bool is_exchanged;
  LazyUniform place;  // times pi / 4 is the angle
};

// The first coordinate of the point at this radius, as far as the direction's word tells.
Enclosure KnownNormal(const Enclosure& radius, uint64_t turn);

// The two normals of radius sqrt(-2 log U) in this direction, as FillGaussianSteps gives them, without doubles.
std::array<int64_t, 2> GaussianPairSteps(LazyUniform radius, LazyTurn turn, double steps_per_deviation,
                                         RandomSource& random);

// The Laplace variable of magnitude -log U, likewise.
int64_t LaplaceSteps(LazyUniform magnitude, bool is_negative, double steps_per_scale, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_NOISE_H_
