#include "core/infer/mean_field.h"

#include <algorithm>
#include <vector>

#include "core/infer/neighbour_sum.h"
#include "core/infer/softmax.h"
#include "core/parallel.h"

namespace dpar {
namespace {

using DoubleRow = Eigen::RowVectorXd;  // sums are in double: a node may have millions of neighbours

constexpr int kIterations = 30;
// Added between any two classes, as a share of all links, so that no class is without links.
constexpr double kLinkSmoothing = 2e-3;
constexpr float kLeastMessage = 1e-9F;
constexpr int64_t kMaxPartialSums = 64;

NodeMatrix SoftmaxRows(const NodeMatrix& scores, int threads) {
  NodeMatrix result(scores.rows(), scores.cols());
  ForRowBlocks(scores.rows(), threads, [&](int64_t first, int64_t last) {
    Eigen::RowVectorXf probabilities(scores.cols());
    for (int64_t node = first; node < last; ++node) {
      Softmax(scores.row(node).cast<double>(), probabilities);
      result.row(node) = probabilities;
    }
  });
  return result;
}

// Blocks are short enough for sums in float.
Eigen::MatrixXd PartialLinks(const EdgesView& edges, const NodeMatrix& q, int64_t first, int64_t last) {
  Eigen::MatrixXd links = Eigen::MatrixXd::Zero(q.cols(), q.cols());
  NodeMatrix around(kRowBlock, q.cols());
  DoubleRow sum(q.cols());
  for (int64_t block = first; block < last; block += kRowBlock) {
    const int64_t rows = std::min(kRowBlock, last - block);
    for (int64_t i = 0; i < rows; ++i) {
      sum.setZero();
      AddNeighbours(edges, block + i, q, sum.data());
      around.row(i) = sum.cast<float>();
    }
    const NodeMatrix product = q.middleRows(block, rows).transpose() * around.topRows(rows);
    links += product.cast<double>();
  }
  return links;
}

// q^T A q: how much links each class with each. Parts follow from the sizes alone and are added in order.
Eigen::MatrixXd Links(const EdgesView& edges, const NodeMatrix& q, int threads) {
  const int64_t least_part = std::max<int64_t>(kRowBlock, 2 * q.cols());
  const int64_t parts = std::clamp<int64_t>(q.rows() / least_part, 1, kMaxPartialSums);
  std::vector<Eigen::MatrixXd> sums(static_cast<size_t>(parts));
  ParallelFor(parts, threads, [&](int /*worker*/, int64_t part) {
    sums[static_cast<size_t>(part)] = PartialLinks(edges, q, q.rows() * part / parts, q.rows() * (part + 1) / parts);
  });
  for (int64_t part = 1; part < parts; ++part) {
    sums[0] += sums[static_cast<size_t>(part)];
  }
  return sums[0];
}

// psi: how much likelier than chance two classes are linked.
Eigen::MatrixXf Affinity(const Eigen::MatrixXd& links, double edge_entries) {
  const auto classes = static_cast<double>(links.rows());
  Eigen::MatrixXd joint = links + links.transpose();
  joint.array() += kLinkSmoothing * edge_entries / (classes * classes);
  const Eigen::VectorXd mass = joint.rowwise().sum();
  const Eigen::VectorXd inverse = mass.cwiseInverse();
  return (mass.sum() * (inverse.asDiagonal() * joint * inverse.asDiagonal())).cast<float>();
}

void MakeMessages(const NodeMatrix& q, const Eigen::MatrixXf& psi, int threads, NodeMatrix& messages) {
  ForRowBlocks(q.rows(), threads, [&](int64_t first, int64_t last) {
    auto block = messages.middleRows(first, last - first);
    block.noalias() = q.middleRows(first, last - first) * psi.transpose();
    block = (block.array() + kLeastMessage).log();
  });
}

// Calls use(node, U + weight times the messages of its neighbours).
template <typename Use>
void HearMessages(const EdgesView& edges, const NodeMatrix& scores, double weight, const NodeMatrix& messages,
                  int threads, const Use& use) {
  ForRowBlocks(scores.rows(), threads, [&](int64_t first, int64_t last) {
    DoubleRow sum(scores.cols());
    for (int64_t node = first; node < last; ++node) {
      sum.setZero();
      AddNeighbours(edges, node, messages, sum.data());
      sum = scores.row(node).cast<double>() + weight * sum;
      use(node, sum);
    }
  });
}

}  // namespace

NodeMatrix MeanField(const EdgesView& edges, const NodeMatrix& scores, double weight, int threads) {
  NodeMatrix q = SoftmaxRows(scores, threads);
  NodeMatrix messages = NodeMatrix::Zero(q.rows(), q.cols());
  const auto entries = static_cast<double>(edges.neighbours.size());
  for (int iteration = 0; iteration < kIterations && entries > 0; ++iteration) {
    MakeMessages(q, Affinity(Links(edges, q, threads), entries), threads, messages);
    const float kept = iteration == 0 ? 0.0F : 0.5F;
    HearMessages(edges, scores, weight, messages, threads, [&](int64_t node, const DoubleRow& sum) {
      Eigen::RowVectorXf next(sum.size());
      Softmax(sum, next);
      q.row(node) = kept * q.row(node) + (1 - kept) * next;
    });
  }
  if (entries > 0) {
    MakeMessages(q, Affinity(Links(edges, q, threads), entries), threads, messages);
  }
  HearMessages(edges, scores, weight, messages, threads, [&](int64_t node, const DoubleRow& sum) {
    q.row(node) = (sum.array() - sum.maxCoeff()).matrix().cast<float>();
  });
  return q;
}

}  // namespace dpar
