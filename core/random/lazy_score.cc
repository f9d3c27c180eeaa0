#include "core/random/lazy_score.h"

#include <optional>
#include <utility>

#include "core/random/interval.h"

namespace dpar {

Enclosure KnownLargest(ScoreNoise noise, const Enclosure& t) {
  return noise == ScoreNoise::kGumbel ? MinusLog(t) : RadiusAt(t);
}

Enclosure KnownNoise(ScoreNoise noise, const Enclosure& largest, uint64_t turn) {
  return noise == ScoreNoise::kGumbel ? largest : KnownNormal(largest, turn);
}

Enclosure KnownScore(double value, double scale, const Enclosure& z) {
  const Enclosure scaled = Outward(value / scale, value / scale);
  return Outward(scaled.low + z.low, scaled.high + z.high);
}

LazyScore::LazyScore(ScoreNoise noise, double value, double scale, std::shared_ptr<AscendingExponentials> exponentials,
                     size_t place, uint64_t turn, const Enclosure& known_noise)
    : noise_(noise),
      value_(value),
      scale_(scale),
      exponentials_(std::move(exponentials)),
      place_(place),
      turn_(turn),
      known_noise_(known_noise),
      known_(KnownScore(value, scale, known_noise)) {}

Interval LazyScore::EncloseNoise(int precision, RandomSource& random) {
  Interval z = exponentials_->Enclose(place_, precision, random);
  if (noise_ == ScoreNoise::kGumbel) {
    z.Log().Negate();
    return z;
  }
  z.Negate().OneMinusExp().Log().Negate().Multiply(2).Sqrt();
  z.Multiply(turn_.EncloseCoordinate(0, precision, random));
  if (turn_.is_negative[0]) {
    z.Negate();
  }
  return z;
}

Interval LazyScore::Enclose(int precision, RandomSource& random) {
  Interval score = EncloseNoise(precision, random);
  score.Add(Interval::Quotient(value_, scale_, precision));
  return score;
}

bool LazyScore::IsAbove(LazyScore& other, RandomSource& random) {
  if (known_.low > other.known_.high || known_.high < other.known_.low) {
    return known_.low > other.known_.high;
  }
  return AtRisingPrecision([&](int precision) -> std::optional<bool> {
    const Interval mine = Enclose(precision, random);
    const Interval theirs = other.Enclose(precision, random);
    if (theirs.IsBelow(mine)) {
      return true;
    }
    return mine.IsBelow(theirs) ? std::optional<bool>(false) : std::nullopt;
  });
}

int64_t LazyScore::NoiseSteps(double steps_per_scale, RandomSource& random) {
  if (const std::optional<int64_t> known = KnownSteps(known_noise_, steps_per_scale); known.has_value()) {
    return *known;
  }
  return AtRisingPrecision(
      [&](int precision) { return EncloseNoise(precision, random).Multiply(steps_per_scale).Add(0.5).Floor(); });
}

}  // namespace dpar
