// Noisy scores that are compared exactly.
//
// A score is value / scale + z, with z a standard Gumbel or normal variable. It is a real number of which only some
// bits are drawn at first. Two scores are compared once the intervals that their bits leave open are apart; until then
// more bits are drawn. Two scores are equal with probability 0.
//
// z is made of an exponential variable t: it is -log t, or sqrt(-2 log(1 - e^-t)) times a coordinate of a point on the
// circle (1 - e^-t is uniform, so this is Box and Muller's normal). Small t makes large noise, so the largest of many
// noises are made of the smallest of as many exponentials (core/random/order_statistics.h).
#ifndef DPAR_CORE_RANDOM_LAZY_SCORE_H_
#define DPAR_CORE_RANDOM_LAZY_SCORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/random/enclosure.h"
#include "core/random/noise.h"
#include "core/random/order_statistics.h"
#include "core/random/random.h"

namespace dpar {

enum class ScoreNoise { kGumbel, kGaussian };

// What is known of the largest z that t can make: of Gumbel noise itself, and of the radius of a normal.
Enclosure KnownLargest(ScoreNoise noise, const Enclosure& t);
// What is known of z, given that and, for a normal, the word of its direction.
Enclosure KnownNoise(ScoreNoise noise, const Enclosure& largest, uint64_t turn);
// What is known of value / scale + z, with scale > 0.
Enclosure KnownScore(double value, double scale, const Enclosure& z);

class LazyScore {
 public:
  // With z made of the exponential at this place of a sequence, which other scores may share, and `known_noise` what
  // KnownNoise tells of it.
  LazyScore(ScoreNoise noise, double value, double scale, std::shared_ptr<AscendingExponentials> exponentials,
            size_t place, uint64_t turn, const Enclosure& known_noise);

  [[nodiscard]] const Enclosure& known() const { return known_; }

  bool IsAbove(LazyScore& other, RandomSource& random);

  // The whole number nearest to steps_per_scale z; beyond +-2^62 that bound.
  int64_t NoiseSteps(double steps_per_scale, RandomSource& random);

 private:
  Interval EncloseNoise(int precision, RandomSource& random);
  Interval Enclose(int precision, RandomSource& random);

  ScoreNoise noise_;
  double value_;
  double scale_;
  std::shared_ptr<AscendingExponentials> exponentials_;
  size_t place_;
  LazyTurn turn_;
  Enclosure known_noise_;
  Enclosure known_;
};

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_LAZY_SCORE_H_
