// A uniform number on [0, 1], an infinite sequence of fair bits of which only the needed ones are drawn. Drawn bits
// stay, so a decision from an interval around the number is the same as if all bits had been known from the start.
#ifndef DPAR_CORE_RANDOM_LAZY_UNIFORM_H_
#define DPAR_CORE_RANDOM_LAZY_UNIFORM_H_

#include <cstdint>
#include <vector>

#include "core/random/interval.h"
#include "core/random/random.h"

namespace dpar {

class LazyUniform {
 public:
  // The leading bits are the lowest `count` (1..64) of `bits`; those above them are 0.
  explicit LazyUniform(uint64_t bits, int count = 64) : first_(bits), count_(count) {}

  // Knows at least `precision` bits after that.
  Interval Enclose(int precision, RandomSource& random);

  // -log of the number, a standard exponential variable.
  Interval EncloseExponential(int precision, RandomSource& random);
  // The same from the first bits alone, in doubles.
  [[nodiscard]] Enclosure KnownExponential() const;

 private:
  uint64_t first_;
  int count_;
  std::vector<uint64_t> more_;
};

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_LAZY_UNIFORM_H_
