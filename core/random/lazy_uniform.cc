#include "core/random/lazy_uniform.h"

namespace dpar {
namespace {

constexpr int kWordBits = 64;

}  // namespace

Interval LazyUniform::Enclose(int precision, RandomSource& random) {
  while (count_ + kWordBits * static_cast<int>(more_.size()) < precision) {
    more_.push_back(UniformBits(random));
  }
  return Interval::StartingWith(first_, count_, more_, precision);
}

Interval LazyUniform::EncloseExponential(int precision, RandomSource& random) {
  Interval exponential = Enclose(precision, random);
  exponential.Log().Negate();
  return exponential;
}

Enclosure LazyUniform::KnownExponential() const { return ExponentialFrom(first_, count_); }

}  // namespace dpar
