// The mean and the spread of one quantity over the seeds.
#ifndef DPAR_TESTS_LAB_SPREAD_H_
#define DPAR_TESTS_LAB_SPREAD_H_

#include <cmath>
#include <numeric>
#include <vector>

namespace dpar::lab {

struct Spread {
  std::vector<double> values;

  [[nodiscard]] double Mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  // The sample standard deviation; 0 for one value.
  [[nodiscard]] double Deviation() const {
    double square = 0;
    for (const double value : values) {
      square += (value - Mean()) * (value - Mean());
    }
    return values.size() < 2 ? 0 : std::sqrt(square / static_cast<double>(values.size() - 1));
  }
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_SPREAD_H_
