#include "core/random/interval.h"

#include <algorithm>

namespace dpar {
namespace {

constexpr int kWordBits = 64;
constexpr long kLargestWhole = long{1} << 62U;
static_assert(sizeof(long) == sizeof(uint64_t), "MPFR's integers are long");

// Frees MPFR's per-thread constants when the thread ends.
struct CacheOwner {
  ~CacheOwner() { mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE); }
};
void OwnThreadCache() { thread_local const CacheOwner owner; }

}  // namespace

Interval::Interval(int precision) {
  OwnThreadCache();
  mpfr_init2(low_, precision);
  mpfr_init2(high_, precision);
  mpfr_set_zero(low_, 1);
  mpfr_set_zero(high_, 1);
}

Interval::Interval(Interval&& other) noexcept : Interval(static_cast<int>(mpfr_get_prec(other.low_))) {
  mpfr_swap(low_, other.low_);
  mpfr_swap(high_, other.high_);
}

Interval::~Interval() {
  mpfr_clear(low_);
  mpfr_clear(high_);
}

Interval Interval::StartingWith(uint64_t first, int count, std::span<const uint64_t> more, int precision) {
  const int known = count + kWordBits * static_cast<int>(more.size());
  Interval exact(known + 1);
  mpfr_set_ui(exact.low_, first, MPFR_RNDN);
  for (const uint64_t word : more) {
    mpfr_mul_2ui(exact.low_, exact.low_, kWordBits, MPFR_RNDN);
    mpfr_add_ui(exact.low_, exact.low_, word, MPFR_RNDN);
  }
  mpfr_add_ui(exact.high_, exact.low_, 1, MPFR_RNDN);
  Interval result(precision);
  mpfr_div_2ui(result.low_, exact.low_, static_cast<unsigned long>(known), MPFR_RNDD);
  mpfr_div_2ui(result.high_, exact.high_, static_cast<unsigned long>(known), MPFR_RNDU);
  return result;
}

Interval Interval::Quotient(double dividend, double divisor, int precision) {
  Interval result(precision);
  mpfr_set_d(result.low_, dividend, MPFR_RNDD);
  mpfr_set_d(result.high_, dividend, MPFR_RNDU);
  mpfr_div_d(result.low_, result.low_, divisor, MPFR_RNDD);
  mpfr_div_d(result.high_, result.high_, divisor, MPFR_RNDU);
  return result;
}

Interval Interval::Pi(int precision) {
  Interval result(precision);
  mpfr_const_pi(result.low_, MPFR_RNDD);
  mpfr_const_pi(result.high_, MPFR_RNDU);
  return result;
}

Interval& Interval::Add(double number) {
  mpfr_add_d(low_, low_, number, MPFR_RNDD);
  mpfr_add_d(high_, high_, number, MPFR_RNDU);
  return *this;
}

Interval& Interval::Add(const Interval& other) {
  mpfr_add(low_, low_, other.low_, MPFR_RNDD);
  mpfr_add(high_, high_, other.high_, MPFR_RNDU);
  return *this;
}

Interval& Interval::Multiply(double factor) {
  mpfr_mul_d(low_, low_, factor, MPFR_RNDD);
  mpfr_mul_d(high_, high_, factor, MPFR_RNDU);
  return *this;
}

Interval& Interval::Multiply(const Interval& factor) {
  mpfr_mul(low_, low_, factor.low_, MPFR_RNDD);
  mpfr_mul(high_, high_, factor.high_, MPFR_RNDU);
  return *this;
}

Interval& Interval::Divide(int64_t divisor) {
  mpfr_div_si(low_, low_, divisor, MPFR_RNDD);
  mpfr_div_si(high_, high_, divisor, MPFR_RNDU);
  return *this;
}

Interval& Interval::Divide(const Interval& divisor) {
  mpfr_div(low_, low_, divisor.high_, MPFR_RNDD);
  mpfr_div(high_, high_, divisor.low_, MPFR_RNDU);
  return *this;
}

Interval& Interval::Negate() {
  mpfr_neg(low_, low_, MPFR_RNDN);
  mpfr_neg(high_, high_, MPFR_RNDN);
  mpfr_swap(low_, high_);
  return *this;
}

Interval& Interval::Sqrt() {
  mpfr_sqrt(low_, low_, MPFR_RNDD);
  mpfr_sqrt(high_, high_, MPFR_RNDU);
  return *this;
}

Interval& Interval::Log() {
  mpfr_log(low_, low_, MPFR_RNDD);
  mpfr_log(high_, high_, MPFR_RNDU);
  return *this;
}

Interval& Interval::LogOnePlus() {
  mpfr_log1p(low_, low_, MPFR_RNDD);
  mpfr_log1p(high_, high_, MPFR_RNDU);
  return *this;
}

Interval& Interval::OneMinusExp() {
  mpfr_expm1(low_, low_, MPFR_RNDD);
  mpfr_expm1(high_, high_, MPFR_RNDU);
  return Negate();
}

Interval& Interval::Sin() {
  mpfr_sin(low_, low_, MPFR_RNDD);
  mpfr_sin(high_, high_, MPFR_RNDU);
  return *this;
}

Interval& Interval::Cos() {
  mpfr_cos(low_, low_, MPFR_RNDU);
  mpfr_cos(high_, high_, MPFR_RNDD);
  mpfr_swap(low_, high_);
  return *this;
}

bool Interval::IsBelow(const Interval& other) const { return mpfr_less_p(high_, other.low_) != 0; }

std::optional<int64_t> Interval::Floor() const {
  const int64_t low = std::clamp(mpfr_get_si(low_, MPFR_RNDD), -kLargestWhole, kLargestWhole);
  const int64_t high = std::clamp(mpfr_get_si(high_, MPFR_RNDD), -kLargestWhole, kLargestWhole);
  return low == high ? std::optional<int64_t>(low) : std::nullopt;
}

Enclosure Interval::Doubles() const { return {mpfr_get_d(low_, MPFR_RNDD), mpfr_get_d(high_, MPFR_RNDU)}; }

}  // namespace dpar
