// Gaussian and Laplace noise, rounded to whole steps of a lattice: exactly.
//
// A draw is a function of uniform numbers of infinitely many bits. Some of the bits are drawn first. They leave an
// interval of values open, and evaluating the function in doubles widens it by a proven bound. If the interval lies in
// one cell of the lattice, the cell is the result. If it straddles a border, more bits are drawn and the function is
// evaluated in intervals of higher precision (core/random/interval.h) until it does not. So every cell comes out with
// the probability that the ideal distribution gives it, in the tails too. docs/privacy.md has the bounds.
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

// Whole steps beyond this, either way, come out as this.
inline constexpr int64_t kLargestNoiseSteps = int64_t{1} << 62U;

// Each out[i] is the whole number nearest to steps_per_deviation z, with z an independent standard normal.
void FillGaussianSteps(RandomSource& random, double steps_per_deviation, std::span<int64_t> out);

// Each out[i] is the whole number nearest to steps_per_scale z, with z an independent Laplace variable of scale 1.
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

// The first coordinate of the point at this radius in the direction of a word, as far as the word tells.
Enclosure KnownNormal(const Enclosure& radius, uint64_t turn);

// The two normals with the radius sqrt(-2 log U) in this direction, as FillGaussianSteps gives them, without the way
// through doubles.
std::array<int64_t, 2> GaussianPairSteps(LazyUniform radius, LazyTurn turn, double steps_per_deviation,
                                         RandomSource& random);

// The Laplace variable of magnitude -log U, likewise.
int64_t LaplaceSteps(LazyUniform magnitude, bool is_negative, double steps_per_scale, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_NOISE_H_
