#include "core/random/subsets.h"

#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "core/random/noise.h"

namespace dpar {

std::vector<int64_t> SampleWithoutReplacement(RandomSource& random, int64_t population, int64_t count) {
  // The first `count` steps of a Fisher-Yates shuffle, of which only the moved places are stored.
  std::vector<int64_t> drawn;
  drawn.reserve(static_cast<size_t>(count));
  absl::flat_hash_map<int64_t, int64_t> moved;
  moved.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = i + static_cast<int64_t>(UniformBelow(random, static_cast<uint64_t>(population - i)));
    const auto at_place = moved.find(place);
    drawn.push_back(at_place == moved.end() ? place : at_place->second);
    const auto at_front = moved.find(i);
    const int64_t front = at_front == moved.end() ? i : at_front->second;
    moved[place] = front;
  }
  return drawn;
}

std::vector<int64_t> PoissonSubset(RandomSource& random, int64_t population, double probability) {
  std::vector<int64_t> selected;
  if (probability <= 0) {
    return selected;
  }
  if (probability >= 1) {
    selected.resize(static_cast<size_t>(population));
    std::iota(selected.begin(), selected.end(), int64_t{0});
    return selected;
  }
  const double rate = -std::log1p(-probability);
  int64_t next = 0;
  while (true) {
    const double gap = std::floor(Exponential(random) / rate);
    if (!(gap < static_cast<double>(population - next))) {
      return selected;
    }
    next += static_cast<int64_t>(gap);
    selected.push_back(next++);
  }
}

}  // namespace dpar
