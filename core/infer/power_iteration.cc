#include "core/infer/power_iteration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/infer/neighbour_sum.h"

namespace dpar {
namespace {

struct Factors {
  std::vector<float> left;
  std::vector<float> right;
};

Factors MakeFactors(const EdgesView& edges, const PredictOptions& options) {
  Factors factors;
  for (int64_t node = 0; node < edges.node_count(); ++node) {
    const auto neighbours = static_cast<double>(edges.neighbours_of(node).size());
    const double degree = std::max(neighbours + (options.self_loops ? 1 : 0), 1.0);
    if (options.normalisation == Normalisation::kRow) {
      factors.left.push_back(static_cast<float>(1 / degree));
      factors.right.push_back(1);
    } else {
      factors.left.push_back(static_cast<float>(1 / std::sqrt(degree)));
      factors.right.push_back(factors.left.back());
    }
  }
  return factors;
}

}  // namespace

NodeMatrix PowerIteration(const EdgesView& edges, const NodeMatrix& logits, const PredictOptions& options,
                          int threads) {
  const Factors factors = MakeFactors(edges, options);
  const auto alpha = static_cast<float>(options.alpha);
  NodeMatrix current = logits;  // right_j Q_j: steps read only rows along the edges
  if (options.iterations > 0) {
    for (int64_t node = 0; node < logits.rows(); ++node) {
      current.row(node) *= factors.right[static_cast<size_t>(node)];
    }
  }
  NodeMatrix next(logits.rows(), logits.cols());
  for (int64_t iteration = 1; iteration <= options.iterations; ++iteration) {
    const bool last_step = iteration == options.iterations;
    ForRowBlocks(logits.rows(), threads, [&](int64_t first, int64_t last) {
      for (int64_t node = first; node < last; ++node) {
        auto out = next.row(node);
        if (edges.neighbours_of(node).empty()) {
          out = logits.row(node);
        } else {
          out.setZero();
          if (options.self_loops) {
            out = current.row(node);
          }
          AddNeighbours(edges, node, current, out.data());
          out = (1 - alpha) * factors.left[static_cast<size_t>(node)] * out + alpha * logits.row(node);
        }
        if (!last_step) {
          out *= factors.right[static_cast<size_t>(node)];
        }
      }
    });
    current.swap(next);
  }
  return current;
}

}  // namespace dpar
