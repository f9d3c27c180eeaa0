// Noisy scores that are compared exactly.
//
// A score is value / scale + z, with z a standard Gumbel or normal variable, a real number of which only some bits are
// drawn at first. A comparison draws more bits until the two intervals are apart; equality has probability 0.
//
// z is made of an exponential variable t: -log t, or sqrt(-2 log(1 - e^-t)) times a coordinate of a point on the circle
// (1 - e^-t is uniform, so this is Box and Muller's normal). Small t makes large noise, so the largest of many noises
// are made of the smallest of as many exponentials (core/random/order_statistics.h).
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

// Encloses the largest z that t can make: Gumbel noise itself, or the radius of a normal.
Enclosure KnownLargest(ScoreNoise noise, const Enclosure& t);
// Encloses z, given that and, for a normal, the word of its direction.
Enclosure KnownNoise(ScoreNoise noise, const Enclosure& largest, uint64_t turn);
// Encloses value / scale + z. scale > 0.
Enclosure KnownScore(double value, double scale, const Enclosure& z);

class LazyScore {
 public:
  // z is made of the exponential at this place of a sequence that scores may share; `known_noise` is KnownNoise of it.
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
