#include "core/appr/testing/reference.h"

#include <algorithm>
#include <cmath>

#include "core/random/testing/plain_noise.h"

namespace dpar::testing {

TextbookIsta::TextbookIsta(const EdgesView& edges, const ApprParameters& parameters)
    : edges_(edges),
      parameters_(parameters),
      root_degrees_(static_cast<size_t>(edges.node_count())),
      x_(root_degrees_.size(), 0),
      gradient_(root_degrees_.size(), 0),
      is_touched_(root_degrees_.size(), false) {
  for (size_t node = 0; node < root_degrees_.size(); ++node) {
    root_degrees_[node] = std::sqrt(DegreeOf(node));
  }
}

double TextbookIsta::DegreeOf(size_t node) const {
  return static_cast<double>(edges_.offsets[node + 1] - edges_.offsets[node]) + (parameters_.self_loops ? 1 : 0);
}

void TextbookIsta::Touch(size_t node) {
  if (!is_touched_[node]) {
    is_touched_[node] = true;
    touched_.push_back(node);
  }
}

SparseVector TextbookIsta::Solve(int64_t seed) {
  const auto start = static_cast<size_t>(seed);
  SparseVector result;
  if (root_degrees_[start] == 0) {
    return result;
  }
  const double weight = parameters_.rho * parameters_.alpha;
  gradient_[start] = -parameters_.alpha / root_degrees_[start];
  Touch(start);
  std::vector<std::pair<size_t, double>> steps;
  while (true) {
    steps.clear();
    double largest = 0;
    for (const size_t node : touched_) {
      largest = std::max(largest, -gradient_[node] / root_degrees_[node]);
      const double bound = weight * root_degrees_[node];
      if (x_[node] - gradient_[node] >= bound) {
        steps.emplace_back(node, -(gradient_[node] + bound));
      }
    }
    if (largest <= (1 + parameters_.gamma) * weight) {
      break;
    }
    for (const auto& [node, step] : steps) {
      x_[node] += step;
      gradient_[node] += (1 + parameters_.alpha) / 2 * step;
      const double share = (1 - parameters_.alpha) / 2 * step / root_degrees_[node];
      if (parameters_.self_loops) {
        gradient_[node] -= share / root_degrees_[node];
      }
      for (const int32_t neighbour : edges_.neighbours_of(static_cast<int64_t>(node))) {
        const auto other = static_cast<size_t>(neighbour);
        gradient_[other] -= share / root_degrees_[other];
        Touch(other);
      }
    }
  }
  for (const size_t node : touched_) {
    if (x_[node] > 0) {
      result.ids.push_back(static_cast<int32_t>(node));
      result.values.push_back(x_[node] * root_degrees_[node]);
    }
    x_[node] = 0;
    gradient_[node] = 0;
    is_touched_[node] = false;
  }
  touched_.clear();
  return result;
}

std::vector<NoisyEntry> DenseTopK(const SparseVector& scores, int64_t node_count, int64_t k, ScoreNoise noise,
                                  double scale, RandomSource& random) {
  std::vector<double> draws(static_cast<size_t>(node_count));
  if (noise == ScoreNoise::kGumbel) {
    FillGumbel(random, draws);
  } else {
    FillGaussian(random, draws);
  }
  std::vector<NoisyEntry> entries(draws.size());
  for (size_t slot = 0; slot < entries.size(); ++slot) {
    entries[slot] = {static_cast<int32_t>(slot), 0, scale * draws[slot]};
  }
  for (size_t i = 0; i < scores.ids.size(); ++i) {
    entries[static_cast<size_t>(scores.ids[i])].value = scores.values[i];
  }
  const auto descending = [](const NoisyEntry& a, const NoisyEntry& b) { return a.noisy() > b.noisy(); };
  const auto last = entries.begin() + k;
  std::partial_sort(entries.begin(), last, entries.end(), descending);
  entries.erase(last, entries.end());
  return entries;
}

}  // namespace dpar::testing
