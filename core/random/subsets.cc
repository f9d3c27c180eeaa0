#include "core/random/subsets.h"

#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "core/random/enclosure.h"
#include "core/random/interval.h"
#include "core/random/lazy_uniform.h"

namespace dpar {
namespace {

constexpr int kRatePrecision = 128;

Interval EncloseRate(double probability, int precision) {
  Interval rate = Interval::Quotient(-probability, 1, precision);
  rate.LogOnePlus().Negate();
  return rate;
}

// The whole part of an exponential over the rate; any number >= `enough` if that is.
int64_t DrawGap(RandomSource& random, double probability, const Enclosure& rate, int64_t enough) {
  LazyUniform uniform(UniformBits(random));
  const Enclosure exponential = uniform.KnownExponential();
  const Enclosure gap = Outward(exponential.low / rate.high, exponential.high / rate.low);
  const double whole = std::floor(gap.low);
  if (whole >= static_cast<double>(enough)) {
    return enough;
  }
  if (whole == std::floor(gap.high)) {
    return static_cast<int64_t>(whole);
  }
  return AtRisingPrecision([&](int precision) {
    return uniform.EncloseExponential(precision, random).Divide(EncloseRate(probability, precision)).Floor();
  });
}

}  // namespace

std::vector<int64_t> SampleWithoutReplacement(RandomSource& random, int64_t population, int64_t count) {
  // A partial Fisher-Yates shuffle that stores only the moved places.
  std::vector<int64_t> drawn;
  drawn.reserve(static_cast<size_t>(count));
  absl::flat_hash_map<int64_t, int64_t> moved;
  moved.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = i + static_cast<int64_t>(UniformBelow(random, static_cast<uint64_t>(population - i)));
    const auto at_place = moved.find(place);
    drawn.push_back(at_place == moved.end() ? place : at_place->second);
    const auto at_front = moved.find(i);
    const int64_t front = at_front == moved.end() ? i : at_front->second;
    moved[place] = front;
  }
  return drawn;
}

std::vector<int64_t> PoissonSubset(RandomSource& random, int64_t population, double probability) {
  std::vector<int64_t> selected;
  if (probability <= 0) {
    return selected;
  }
  if (probability >= 1) {
    selected.resize(static_cast<size_t>(population));
    std::iota(selected.begin(), selected.end(), int64_t{0});
    return selected;
  }
  const Enclosure rate = EncloseRate(probability, kRatePrecision).Doubles();
  int64_t next = 0;
  while (true) {
    const int64_t gap = DrawGap(random, probability, rate, population - next);
    if (gap >= population - next) {
      return selected;
    }
    next += gap;
    selected.push_back(next++);
  }
}

}  // namespace dpar
