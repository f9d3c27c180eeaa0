#include "core/random/order_statistics.h"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

#include "core/random/noise.h"

namespace dpar {
namespace {

// Plain doubles: 80-bit arithmetic is several times slower and nothing here needs it.
using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

// The z above which a standard normal lies with this probability, 0 < probability <= 1/2.
double UpperQuantile(double probability) {
  return std::numbers::sqrt2 * boost::math::erfc_inv(2 * probability, Policy());
}

}  // namespace

double AscendingExponentials::Next(RandomSource& random) {
  last_ += Exponential(random) / static_cast<double>(remaining_--);
  return last_;
}

double GumbelAt(double t) { return -std::log(t); }

double GaussianAt(double t) {
  return t < std::numbers::ln2 ? UpperQuantile(-std::expm1(-t)) : -UpperQuantile(std::exp(-t));
}

}  // namespace dpar
