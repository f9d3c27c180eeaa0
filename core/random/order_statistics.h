// The largest of many independent noises without drawing them all.
//
// If U is uniform, -log U is a standard exponential, so the largest of n noises with distribution function F comes from
// the smallest of n exponentials: F^-1(exp(-t)). The smallest is an exponential over n, and what the next one adds to
// it is an exponential over n - 1, and so on (Renyi 1953). The sequence has exactly the distribution of the sorted
// sample. Small t is the tail of large noise; exponentials are drawn with full relative precision there.
#ifndef DPAR_CORE_RANDOM_ORDER_STATISTICS_H_
#define DPAR_CORE_RANDOM_ORDER_STATISTICS_H_

#include <cstdint>

#include "core/random/random.h"

namespace dpar {

// `population` standard exponentials in ascending order, one at a time in constant time.
class AscendingExponentials {
 public:
  explicit AscendingExponentials(int64_t population) : remaining_(population) {}

  [[nodiscard]] int64_t remaining() const { return remaining_; }
  // The next one; remaining() must be above 0.
  double Next(RandomSource& random);

 private:
  int64_t remaining_;
  double last_ = 0;
};

// The standard Gumbel and normal quantile at exp(-t), for t from 1e-29, the least that is drawn for 2^32 slots, to 60.
double GumbelAt(double t);
double GaussianAt(double t);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_ORDER_STATISTICS_H_
