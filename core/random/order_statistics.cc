#include "core/random/order_statistics.h"

#include <utility>

namespace dpar {

AscendingExponentials AscendingExponentials::OfOne(uint64_t bits) {
  AscendingExponentials one(1);
  one.Append(LazyUniform(bits));
  return one;
}

Enclosure AscendingExponentials::Next(RandomSource& random) { return Append(LazyUniform(UniformBits(random))); }

Enclosure AscendingExponentials::Append(LazyUniform uniform) {
  const Enclosure exponential = uniform.KnownExponential();
  const auto left = static_cast<double>(remaining());
  last_ = Outward(last_.low + exponential.low / left, last_.high + exponential.high / left);
  uniforms_.push_back(std::move(uniform));
  return last_;
}

Interval AscendingExponentials::Enclose(size_t place, int precision, RandomSource& random) {
  Interval sum(precision);
  for (size_t i = 0; i <= place; ++i) {
    sum.Add(uniforms_[i].EncloseExponential(precision, random).Divide(population_ - static_cast<int64_t>(i)));
  }
  return sum;
}

}  // namespace dpar
