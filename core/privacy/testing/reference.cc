#include "core/privacy/testing/reference.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/privacy/gaussian.h"

namespace dpar::testing {

FlatEvent OfGaussian(double mu) {
  FlatEvent event;
  event.gaussian_mu = mu;
  return event;
}

FlatEvent OfMixture(const RowMixture& mixture, int64_t count) {
  FlatEvent event;
  event.mixtures[mixture] = count;
  return event;
}

FlatEvent OfLaplace(double epsilon, int64_t count) {
  FlatEvent event;
  event.laplaces[epsilon] = count;
  return event;
}

FlatEvent OfSelection(double range, int64_t count) {
  FlatEvent event;
  event.selections[range] = count;
  return event;
}

FlatEvent OfSample(double rate, FlatEvent inner, int64_t count) {
  FlatEvent event;
  event.sampled.push_back({rate, std::move(inner), count});
  return event;
}

double SampledDelta(double rate, double mu, Direction direction, double epsilon) {
  if (direction == Direction::kRemove) {
    return rate * GaussianDelta(mu, std::log1p(std::expm1(epsilon) / rate)).value();
  }
  const double rest = std::expm1(-epsilon) + rate;  // q e^-x
  if (rest <= 0) {
    return 0;
  }
  const double x = std::log(rate / rest);
  return rate * GaussianDelta(mu, std::max(0.0, x)).value() / (rate + (1 - rate) * std::exp(x));
}

double SampledEpsilon(double rate, double mu, Direction direction, double delta) {
  const double largest = GaussianEpsilon(mu, delta / rate).value();
  if (direction == Direction::kRemove) {
    return std::log1p(rate * std::expm1(largest));
  }
  // The smallest x with q delta(x) <= delta' (q + (1-q) e^x).
  double low = 0;
  double high = largest;
  for (int i = 0; i < 200; ++i) {
    const double x = (low + high) / 2;
    const bool met = rate * GaussianDelta(mu, x).value() <= delta * (rate + (1 - rate) * std::exp(x));
    (met ? high : low) = x;
  }
  return -std::log1p(rate * std::expm1(-high));
}

std::vector<long double> RowWeights(int rows, double rate) {
  const auto q = static_cast<long double>(rate);
  std::vector<long double> weights = {std::pow(1 - q, static_cast<long double>(rows))};
  for (int k = 1; k <= rows; ++k) {
    weights.push_back(weights.back() * static_cast<long double>(rows - k + 1) / static_cast<long double>(k) * q /
                      (1 - q));
  }
  return weights;
}

// The weights sum to 1, so every term may have its 1 taken off first, and none cancels.
long double BinomialRenyi(double rate, double sigma, int order) {
  const auto q = static_cast<long double>(rate);
  const auto s = static_cast<long double>(sigma);
  long double weight = std::pow(1 - q, static_cast<long double>(order));
  long double excess = 0;
  for (int j = 1; j <= order; ++j) {
    const auto at = static_cast<long double>(j);
    weight *= static_cast<long double>(order - j + 1) / at * q / (1 - q);
    excess += weight * std::expm1(at * (at - 1) / (2 * s * s));
  }
  return std::log1p(excess) / static_cast<long double>(order - 1);
}

long double NaiveAddition(int rows, double rate, double sigma, double order) {
  const std::vector<long double> weights = RowWeights(rows, rate);
  const long double mu = 1 / static_cast<long double>(sigma);
  constexpr long double kStep = 1 / 64.0L;
  constexpr long double kSqrtTwoPi = 2.50662827463100050241576528481104525L;
  long double sum = 0;
  for (int i = -64 * 40; i <= 64 * 40; ++i) {
    const long double y = kStep * static_cast<long double>(i);
    long double ratio = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      const long double shift = mu * static_cast<long double>(k);
      ratio += weights[k] * std::exp(shift * (y - shift / 2));
    }
    sum += std::exp(-y * y / 2) * std::pow(ratio, 1 - static_cast<long double>(order));
  }
  return std::log(sum * kStep / kSqrtTwoPi) / static_cast<long double>(order - 1);
}

}  // namespace dpar::testing
