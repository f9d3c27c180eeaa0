// Random subsets of 0..population-1, in time and memory that follow what is selected, not the population.
#ifndef DPAR_CORE_RANDOM_SUBSETS_H_
#define DPAR_CORE_RANDOM_SUBSETS_H_

#include <cstdint>
#include <vector>

#include "core/random/random.h"

namespace dpar {

// `count` distinct values, uniformly among all sequences of that length. 0 <= count <= population. O(count).
std::vector<int64_t> SampleWithoutReplacement(RandomSource& random, int64_t population, int64_t count);

// Each value independently with exactly this probability (0..1), ascending. O(selected): gaps are geometric, the whole
// part of an exponential over -log(1 - probability), whose bits are drawn until it is sure.
std::vector<int64_t> PoissonSubset(RandomSource& random, int64_t population, double probability);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_SUBSETS_H_
