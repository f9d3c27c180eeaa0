#include "core/appr/selection.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/random/enclosure.h"
#include "core/random/lazy_uniform.h"
#include "core/random/order_statistics.h"
#include "core/random/subsets.h"

namespace dpar {
namespace {

// With fewer slots for each one in the support or chosen, list them all; with more, a random slot is hardly ever taken.
constexpr int64_t kSlotsWorthListing = 8;

constexpr int32_t kNoId = -1;  // slots outside the support get their ids last

class LargestNumbers {
 public:
  explicit LargestNumbers(size_t size) : size_(size) {}

  void Add(double number) {
    ascending_.push(number);
    if (ascending_.size() > size_) {
      ascending_.pop();
    }
  }
  // Minus infinity while there are fewer than `size`.
  [[nodiscard]] double smallest() const {
    return ascending_.size() < size_ ? -std::numeric_limits<double>::infinity() : ascending_.top();
  }

 private:
  size_t size_;
  std::priority_queue<double, std::vector<double>, std::greater<>> ascending_;
};

// What is chosen from, and a bound that at least k of the scores are certainly not below.
struct Candidates {
  std::vector<SelectedEntry> entries;
  double bar = 0;
};

Candidates OutsideCandidates(int64_t population, int64_t k, ScoreNoise noise, double scale, RandomSource& random) {
  const auto exponentials = std::make_shared<AscendingExponentials>(population);
  Candidates candidates;
  LargestNumbers largest(static_cast<size_t>(k));
  for (size_t place = 0; exponentials->remaining() > 0; ++place) {
    const Enclosure ceiling = KnownLargest(noise, exponentials->Next(random));  // all noise to come is at most this
    if (largest.smallest() >= ceiling.high) {
      break;
    }
    const uint64_t turn = noise == ScoreNoise::kGumbel ? 0 : UniformBits(random);
    const Enclosure z = KnownNoise(noise, ceiling, turn);
    if (z.high >= largest.smallest()) {
      largest.Add(z.low);
      candidates.entries.push_back({kNoId, 0, LazyScore(noise, 0, scale, exponentials, place, turn, z)});
    }
  }
  candidates.bar = largest.smallest();
  return candidates;
}

void AddSupport(const SparseVector& scores, ScoreNoise noise, double scale, RandomSource& random,
                Candidates& candidates) {
  const size_t words_each = noise == ScoreNoise::kGumbel ? 1 : 2;
  std::vector<uint64_t> words(words_each * scores.ids.size());
  random.Fill({reinterpret_cast<uint8_t*>(words.data()), words.size() * sizeof(uint64_t)});
  for (size_t i = 0; i < scores.ids.size(); ++i) {
    const uint64_t bits = words[words_each * i];
    const uint64_t turn = noise == ScoreNoise::kGumbel ? 0 : words[words_each * i + 1];
    const Enclosure z = KnownNoise(noise, KnownLargest(noise, LazyUniform(bits).KnownExponential()), turn);
    if (KnownScore(scores.values[i], scale, z).high >= candidates.bar) {
      const auto one = std::make_shared<AscendingExponentials>(AscendingExponentials::OfOne(bits));
      candidates.entries.push_back(
          {scores.ids[i], scores.values[i], LazyScore(noise, scores.values[i], scale, one, 0, turn, z)});
    }
  }
}

std::vector<SelectedEntry> Largest(std::vector<SelectedEntry> entries, int64_t k, RandomSource& random) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](size_t a, size_t b) { return a != b && entries[a].score.IsAbove(entries[b].score, random); });
  order.resize(static_cast<size_t>(k));
  std::vector<SelectedEntry> largest;
  largest.reserve(order.size());
  for (const size_t place : order) {
    largest.push_back(std::move(entries[place]));
  }
  return largest;
}

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

// For a support much smaller than the graph. Walks the support past the few candidates instead of hashing it.
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

std::vector<SelectedEntry> SelectTopK(const SparseVector& scores, int64_t node_count, int64_t k, ScoreNoise noise,
                                      double scale, RandomSource& random) {
  const int64_t outside = node_count - static_cast<int64_t>(scores.ids.size());
  Candidates candidates = OutsideCandidates(outside, k, noise, scale, random);
  AddSupport(scores, noise, scale, random, candidates);
  std::vector<SelectedEntry> selected = Largest(std::move(candidates.entries), k, random);

  const auto is_outside = [](const SelectedEntry& entry) { return entry.id == kNoId; };
  const int64_t chosen = std::count_if(selected.begin(), selected.end(), is_outside);
  const std::vector<int32_t> ids = ChooseOutside(scores.ids, node_count, chosen, random);
  auto id = ids.begin();
  for (SelectedEntry& entry : selected) {
    if (is_outside(entry)) {
      entry.id = *id++;
    }
  }
  return selected;
}

}  // namespace dpar
