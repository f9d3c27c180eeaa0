// The smallest of many independent exponential variables without drawing them all. The smallest of n is an exponential
// over n, the next one adds an exponential over n - 1, and so on (Renyi 1953): exactly the distribution of the sorted
// sample. Members are real numbers whose bits are drawn as needed.
#ifndef DPAR_CORE_RANDOM_ORDER_STATISTICS_H_
#define DPAR_CORE_RANDOM_ORDER_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random/enclosure.h"
#include "core/random/interval.h"
#include "core/random/lazy_uniform.h"
#include "core/random/random.h"

namespace dpar {

// `population` standard exponentials in ascending order.
class AscendingExponentials {
 public:
  explicit AscendingExponentials(int64_t population) : population_(population) {}
  // One exponential, -log of a uniform number that starts with these 64 bits.
  static AscendingExponentials OfOne(uint64_t bits);

  [[nodiscard]] int64_t remaining() const { return population_ - static_cast<int64_t>(uniforms_.size()); }
  // Draws the first bits of the next one, in constant time, and encloses it. remaining() must be above 0.
  Enclosure Next(RandomSource& random);

  // The one at this place, from 0, of those drawn. O(place).
  Interval Enclose(size_t place, int precision, RandomSource& random);

 private:
  Enclosure Append(LazyUniform uniform);

  int64_t population_;
  std::vector<LazyUniform> uniforms_;
  Enclosure last_;
};

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_ORDER_STATISTICS_H_
