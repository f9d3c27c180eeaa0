#include "core/random/testing/statistics.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <utility>

namespace dpar::testing {
namespace {

double PoissonMass(int64_t count, double expected) {
  const auto k = static_cast<double>(count);
  return std::exp(k * std::log(expected) - expected - std::lgamma(k + 1));
}

double PoissonAtMost(int64_t count, double expected) {
  double sum = 0;
  double mass = PoissonMass(count, expected);
  for (int64_t k = count; k >= 0 && sum + mass != sum; --k) {
    sum += mass;
    mass *= static_cast<double>(k) / expected;
  }
  return sum;
}

double PoissonAtLeast(int64_t count, double expected) {
  double sum = 0;
  double mass = PoissonMass(count, expected);
  for (int64_t k = count; sum + mass != sum; ++k) {
    sum += mass;
    mass *= expected / static_cast<double>(k + 1);
  }
  return sum;
}

}  // namespace

ScriptedRandom::ScriptedRandom(std::vector<uint64_t> words) : words_(std::move(words)) {}

void ScriptedRandom::Fill(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const uint64_t word = words_.at(next_++);
    const size_t size = std::min(bytes.size(), sizeof(word));
    std::memcpy(bytes.data(), &word, size);
    bytes = bytes.subspan(size);
  }
}

std::unique_ptr<RandomSource> ScriptedRandom::Split() { return std::make_unique<ScriptedRandom>(words_); }

double KolmogorovStatistic(std::vector<double> sample, const std::function<double(double)>& cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double largest = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(sample[i]);
    largest =
        std::max({largest, std::abs(p - static_cast<double>(i) / n), std::abs(p - static_cast<double>(i + 1) / n)});
  }
  return largest * std::sqrt(n);
}

double KolmogorovStatistic(std::vector<double> first, std::vector<double> second) {
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  const auto n = static_cast<double>(first.size());
  const auto m = static_cast<double>(second.size());
  double largest = 0;
  size_t i = 0;
  size_t j = 0;
  while (i < first.size() && j < second.size()) {
    const double x = std::min(first[i], second[j]);
    while (i < first.size() && first[i] <= x) {
      ++i;
    }
    while (j < second.size() && second[j] <= x) {
      ++j;
    }
    largest = std::max(largest, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  return largest * std::sqrt(n * m / (n + m));
}

double ChiSquareTail(std::span<const int64_t> counts, std::span<const double> expected) {
  double statistic = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double difference = static_cast<double>(counts[i]) - expected[i];
    statistic += difference * difference / expected[i];
  }
  return ChiSquareTail(statistic, static_cast<int64_t>(counts.size()) - 1);
}

double ChiSquareTail(std::span<const int64_t> counts) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const std::vector<double> expected(counts.size(), total / static_cast<double>(counts.size()));
  return ChiSquareTail(counts, expected);
}

double ChiSquareTail(double statistic, int64_t degrees_of_freedom) {
  return boost::math::gamma_q(static_cast<double>(degrees_of_freedom) / 2, statistic / 2);
}

double PoissonTail(int64_t count, double expected) {
  return std::min(PoissonAtMost(count, expected), PoissonAtLeast(count, expected));
}

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double NormalUpperQuantile(long double probability) {
  constexpr int kHalvings = 80;
  long double low = -40;
  long double high = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const long double middle = (low + high) / 2;
    const bool above = std::erfc(middle / std::numbers::sqrt2_v<long double>) > 2 * probability;
    (above ? low : high) = middle;
  }
  return static_cast<double>(low);
}

}  // namespace dpar::testing
