// What the tests of samplers share: how unlikely a sample is under the distribution that it should have, and a source
// of scripted bits. No production target links it. The tests fix their streams, so a false-alarm rate below is the
// chance that the stream chosen once was an unlucky one. Time is that of sorting a sample at most.
#ifndef DPAR_CORE_RANDOM_TESTING_STATISTICS_H_
#define DPAR_CORE_RANDOM_TESTING_STATISTICS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/random/random.h"

namespace dpar::testing {

// Hands out the words it was given, for exact values at the edges; asking for more throws. What is split off starts
// with the first word again.
class ScriptedRandom final : public RandomSource {
 public:
  explicit ScriptedRandom(std::vector<uint64_t> words);

  void Fill(std::span<uint8_t> bytes) override;
  std::unique_ptr<RandomSource> Split() override;

 private:
  std::vector<uint64_t> words_;
  size_t next_ = 0;
};

// The Kolmogorov-Smirnov statistic of a sample, times the square root of its size.
double KolmogorovStatistic(std::vector<double> sample, const std::function<double(double)>& cdf);
// The one of two samples of n and m values, times sqrt(n m / (n + m)).
double KolmogorovStatistic(std::vector<double> first, std::vector<double> second);
// Either exceeds this with a probability below 2 exp(-2 * 2.5^2) = 7.5e-6.
inline constexpr double kKolmogorovLimit = 2.5;

// The probability that Pearson's statistic of such counts is at least as large as this one. The expected counts have
// the total of the counts.
double ChiSquareTail(std::span<const int64_t> counts, std::span<const double> expected);
// The same where every cell is equally likely.
double ChiSquareTail(std::span<const int64_t> counts);
// The probability that a chi-square variable is at least this large.
double ChiSquareTail(double statistic, int64_t degrees_of_freedom);

// The probability that a Poisson count lies as far out as this one, on its side.
double PoissonTail(int64_t count, double expected);

// A tail below this fails a test.
inline constexpr double kUnlikely = 1e-6;

double NormalCdf(double x);
// The z above which a standard normal lies with this probability, 0 < probability < 1, by bisection.
double NormalUpperQuantile(long double probability);

}  // namespace dpar::testing

#endif  // DPAR_CORE_RANDOM_TESTING_STATISTICS_H_
