#include "core/appr/selection.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/random/noise.h"
#include "core/random/order_statistics.h"
#include "core/random/subsets.h"

namespace dpar {
namespace {

// Below this many slots for each one in the support or chosen, they are all written down; above it, a slot drawn at
// random is hardly ever taken.
constexpr int64_t kSlotsWorthListing = 8;

bool Descending(const SelectedEntry& a, const SelectedEntry& b) { return a.noisy() > b.noisy(); }

// The `count` largest noises of `population` slots, descending.
std::vector<double> LargestNoises(int64_t population, int64_t count, SelectionNoise noise, double scale,
                                  RandomSource& random) {
  AscendingExponentials exponentials(population);
  std::vector<double> noises(static_cast<size_t>(count));
  for (double& value : noises) {
    const double t = exponentials.Next(random);
    value = scale * (noise == SelectionNoise::kGumbel ? GumbelAt(t) : GaussianAt(t));
  }
  return noises;
}

// The entries of the support whose noisy score is above `bar`, or all of them without one, descending.
std::vector<SelectedEntry> SupportAbove(std::optional<double> bar, const SparseVector& scores, SelectionNoise noise,
                                        double scale, RandomSource& random) {
  std::vector<double> draws(scores.ids.size());
  if (noise == SelectionNoise::kGumbel) {
    FillGumbel(random, draws);
  } else {
    FillGaussian(random, draws);
  }
  std::vector<SelectedEntry> above;
  for (size_t i = 0; i < draws.size(); ++i) {
    const SelectedEntry entry{scores.ids[i], scores.values[i], scale * draws[i]};
    if (!bar.has_value() || entry.noisy() > *bar) {
      above.push_back(entry);
    }
  }
  std::sort(above.begin(), above.end(), Descending);
  return above;
}

// Outside a support that is not much smaller than the graph.
std::vector<int32_t> ListAndChoose(std::span<const int32_t> support, int64_t node_count, int64_t count,
                                   RandomSource& random) {
  std::vector<bool> taken(static_cast<size_t>(node_count), false);
  for (const int32_t id : support) {
    taken[static_cast<size_t>(id)] = true;
  }
  std::vector<int32_t> free;
  for (size_t id = 0; id < taken.size(); ++id) {
    if (!taken[id]) {
      free.push_back(static_cast<int32_t>(id));
    }
  }
  std::vector<int32_t> chosen;
  for (const int64_t place : SampleWithoutReplacement(random, static_cast<int64_t>(free.size()), count)) {
    chosen.push_back(free[static_cast<size_t>(place)]);
  }
  return chosen;
}

// Outside a support that is much smaller than the graph: draws until `count` different slots stand that are not in it.
// The support is walked past the few candidates, not put into a table itself.
std::vector<int32_t> DrawAndReject(std::span<const int32_t> support, int64_t node_count, size_t count,
                                   RandomSource& random) {
  std::vector<int32_t> chosen;
  absl::flat_hash_set<int32_t> seen;  // chosen before or refused
  while (chosen.size() < count) {
    absl::flat_hash_map<int32_t, bool> is_free;
    std::vector<int32_t> candidates;
    while (chosen.size() + candidates.size() < count) {
      const auto id = static_cast<int32_t>(UniformBelow(random, static_cast<uint64_t>(node_count)));
      if (seen.insert(id).second) {
        candidates.push_back(id);
        is_free[id] = true;
      }
    }
    for (const int32_t id : support) {
      const auto found = is_free.find(id);
      if (found != is_free.end()) {
        found->second = false;
      }
    }
    std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(chosen),
                 [&](int32_t id) { return is_free.at(id); });
  }
  return chosen;
}

// `count` different slots outside the support, uniformly among all sequences of them.
std::vector<int32_t> ChooseOutside(std::span<const int32_t> support, int64_t node_count, int64_t count,
                                   RandomSource& random) {
  if (count == 0) {
    return {};
  }
  if (node_count / kSlotsWorthListing < static_cast<int64_t>(support.size()) + count) {
    return ListAndChoose(support, node_count, count, random);
  }
  return DrawAndReject(support, node_count, static_cast<size_t>(count), random);
}

}  // namespace

std::vector<SelectedEntry> SelectTopK(const SparseVector& scores, int64_t node_count, int64_t k, SelectionNoise noise,
                                      double scale, RandomSource& random) {
  const int64_t outside = node_count - static_cast<int64_t>(scores.ids.size());
  const std::vector<double> noises = LargestNoises(outside, std::min(k, outside), noise, scale, random);
  // With k slots outside at or above it, nothing below it can be among the k largest.
  const std::optional<double> bar =
      static_cast<int64_t>(noises.size()) == k ? std::optional<double>(noises.back()) : std::nullopt;
  const std::vector<SelectedEntry> support = SupportAbove(bar, scores, noise, scale, random);

  std::vector<SelectedEntry> selected;
  size_t next_inside = 0;
  size_t next_outside = 0;
  while (static_cast<int64_t>(selected.size()) < k) {
    const bool from_support = next_outside == noises.size() ||
                              (next_inside < support.size() && support[next_inside].noisy() > noises[next_outside]);
    selected.push_back(from_support ? support[next_inside++] : SelectedEntry{-1, 0, noises[next_outside++]});
  }
  const std::vector<int32_t> ids = ChooseOutside(scores.ids, node_count, static_cast<int64_t>(next_outside), random);
  auto id = ids.begin();
  for (SelectedEntry& entry : selected) {
    if (entry.id < 0) {
      entry.id = *id++;
    }
  }
  return selected;
}

}  // namespace dpar
