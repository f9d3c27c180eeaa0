#include "core/infer/neighbour_weight.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/infer/mean_field.h"
#include "core/infer/softmax.h"

namespace dpar {
namespace {

using DoubleRow = Eigen::RowVectorXd;

constexpr int kMostHalvings = 5;
// Of errors to those that features claim. Features of dense graphs may claim a half too little (docs/privacy.md).
constexpr double kMostErrors = 1.5;

double Trust(double scale) { return scale > 1 ? 1 / scale : 1; }

// Whether the features' best classes are wrong about as often under `heard` as they claim.
bool Agrees(const NodeMatrix& own, const DoubleRow& correction, double trust, const NodeMatrix& heard, int threads) {
  std::vector<double> excess(static_cast<size_t>(own.rows()));
  ForRowBlocks(own.rows(), threads, [&](int64_t first, int64_t last) {
    DoubleRow features(own.cols());
    Eigen::RowVectorXf probabilities(own.cols());
    for (int64_t node = first; node < last; ++node) {
      features = trust * own.row(node).cast<double>() + (1 - trust) * correction;
      Softmax(features, probabilities);
      Eigen::Index best = 0;
      const auto claimed = static_cast<double>(probabilities.maxCoeff(&best));
      Softmax(heard.row(node).cast<double>(), probabilities);
      excess[static_cast<size_t>(node)] = 1 - static_cast<double>(probabilities[best]) - kMostErrors * (1 - claimed);
    }
  });
  return std::accumulate(excess.begin(), excess.end(), 0.0) <= 0;
}

}  // namespace

HeardNeighbours HearNeighbours(const EdgesView& edges, NodeMatrix own, const std::vector<double>& correction,
                               double scale, int threads) {
  if (correction.empty()) {
    return {MeanField(edges, own, 1, threads), 1};
  }
  const DoubleRow row = Eigen::Map<const DoubleRow>(correction.data(), own.cols());
  for (int halvings = 0; halvings <= kMostHalvings; ++halvings) {
    const double weight = std::ldexp(1.0, -halvings);
    NodeMatrix heard = MeanField(edges, own, weight, threads);
    if (Agrees(own, row, Trust(scale), heard, threads)) {
      return {std::move(heard), weight};
    }
  }
  return {std::move(own), 0};
}

void TemperScores(const EdgesView& edges, double scale, double weight, int threads, NodeMatrix& scores) {
  ForRowBlocks(scores.rows(), threads, [&](int64_t first, int64_t last) {
    for (int64_t node = first; node < last; ++node) {
      const double degree = weight > 0 ? static_cast<double>(edges.neighbours_of(node).size()) : 0;
      scores.row(node) *= static_cast<float>(Trust(scale) / std::sqrt(1 + weight * degree));
    }
  });
}

}  // namespace dpar
