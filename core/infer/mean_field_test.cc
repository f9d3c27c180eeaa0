#include "core/infer/mean_field.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using Table = std::vector<std::vector<double>>;

struct Edges {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> neighbours;

  [[nodiscard]] EdgesView view() const { return {offsets, neighbours}; }
};

// The last tenth of the nodes are isolated.
Edges RandomEdges(int32_t nodes, int64_t edges, FixedRandom& random) {
  std::vector<std::set<int32_t>> rows(static_cast<size_t>(nodes));
  const auto linked = static_cast<uint64_t>(nodes - nodes / 10);
  for (int64_t i = 0; i < edges; ++i) {
    const auto from = static_cast<int32_t>(UniformBelow(random, linked));
    const auto to = static_cast<int32_t>(UniformBelow(random, linked));
    if (from != to) {
      rows[static_cast<size_t>(from)].insert(to);
      rows[static_cast<size_t>(to)].insert(from);
    }
  }
  Edges result;
  for (const std::set<int32_t>& row : rows) {
    result.neighbours.insert(result.neighbours.end(), row.begin(), row.end());
    result.offsets.push_back(static_cast<int64_t>(result.neighbours.size()));
  }
  return result;
}

NodeMatrix RandomScores(int64_t nodes, int64_t classes, FixedRandom& random) {
  NodeMatrix scores(nodes, classes);
  for (int64_t i = 0; i < scores.size(); ++i) {
    scores.data()[i] = static_cast<float>(4 * UniformReal(random) - 2);
  }
  return scores;
}

std::vector<double> Softmax(std::vector<double> scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    total += score;
  }
  for (double& score : scores) {
    score /= total;
  }
  return scores;
}

// psi of the formula in predict.h.
Table Affinity(const Edges& edges, const Table& q) {
  const size_t classes = q[0].size();
  Table links(classes, std::vector<double>(classes, 0));
  for (size_t i = 0; i < q.size(); ++i) {
    for (const int32_t j : edges.view().neighbours_of(static_cast<int64_t>(i))) {
      for (size_t a = 0; a < classes; ++a) {
        for (size_t b = 0; b < classes; ++b) {
          links[a][b] += q[i][a] * q[static_cast<size_t>(j)][b];
        }
      }
    }
  }
  Table joint = links;
  std::vector<double> mass(classes, 0);
  double total = 0;
  for (size_t a = 0; a < classes; ++a) {
    for (size_t b = 0; b < classes; ++b) {
      joint[a][b] = links[a][b] + links[b][a] +
                    2e-3 * static_cast<double>(edges.neighbours.size()) / static_cast<double>(classes * classes);
      mass[a] += joint[a][b];
    }
    total += mass[a];
  }
  for (size_t a = 0; a < classes; ++a) {
    for (size_t b = 0; b < classes; ++b) {
      joint[a][b] *= total / (mass[a] * mass[b]);
    }
  }
  return joint;
}

// softmax(S) by the formula of predict.h as it stands there, in double, for graphs with an edge.
Table Reference(const Edges& edges, const NodeMatrix& scores, double weight = 1) {
  const auto nodes = static_cast<size_t>(scores.rows());
  const auto classes = static_cast<size_t>(scores.cols());
  Table u(nodes, std::vector<double>(classes));
  Table q(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    for (size_t a = 0; a < classes; ++a) {
      u[i][a] = static_cast<double>(scores(static_cast<int64_t>(i), static_cast<int64_t>(a)));
    }
    q[i] = Softmax(u[i]);
  }
  for (int iteration = 0; iteration <= 30; ++iteration) {
    const Table psi = Affinity(edges, q);
    Table next = u;
    for (size_t i = 0; i < nodes; ++i) {
      for (const int32_t j : edges.view().neighbours_of(static_cast<int64_t>(i))) {
        for (size_t a = 0; a < classes; ++a) {
          double message = 1e-9;
          for (size_t b = 0; b < classes; ++b) {
            message += q[static_cast<size_t>(j)][b] * psi[a][b];
          }
          next[i][a] += weight * std::log(message);
        }
      }
      next[i] = Softmax(next[i]);
    }
    for (size_t i = 0; i < nodes; ++i) {
      for (size_t a = 0; a < classes; ++a) {
        q[i][a] = iteration % 30 == 0 ? next[i][a] : (q[i][a] + next[i][a]) / 2;
      }
    }
  }
  return q;
}

NodeMatrix Probabilities(const Edges& edges, const NodeMatrix& scores, int threads, double weight = 1) {
  NodeMatrix result = MeanField(edges.view(), scores, weight, threads);
  for (int64_t node = 0; node < result.rows(); ++node) {
    EXPECT_EQ(result.row(node).maxCoeff(), 0);
    result.row(node) = result.row(node).array().exp();
    result.row(node) /= result.row(node).sum();
  }
  return result;
}

void ExpectNear(const NodeMatrix& q, const Table& expected, double tolerance) {
  ASSERT_EQ(q.rows(), static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < q.rows(); ++i) {
    for (int64_t a = 0; a < q.cols(); ++a) {
      ASSERT_NEAR(q(i, a), expected[static_cast<size_t>(i)][static_cast<size_t>(a)], tolerance) << i << " " << a;
    }
  }
}

TEST(MeanFieldTest, FollowsTheFormulaOnRandomGraphs) {
  FixedRandom random(1);
  for (int round = 0; round < 40; ++round) {
    const auto nodes = static_cast<int32_t>(2 + UniformBelow(random, 60));
    const auto classes = static_cast<int64_t>(1 + UniformBelow(random, 6));
    Edges edges = RandomEdges(nodes, int64_t{nodes} * 2, random);
    const NodeMatrix scores = RandomScores(nodes, classes, random);
    if (!edges.neighbours.empty()) {
      ExpectNear(Probabilities(edges, scores, 1), Reference(edges, scores), 1e-5);
    }
  }
}

// Several blocks of rows and several parts of the sum over nodes.
TEST(MeanFieldTest, FollowsTheFormulaOnALargerGraph) {
  FixedRandom random(2);
  const Edges edges = RandomEdges(2000, 6000, random);
  const NodeMatrix scores = RandomScores(2000, 4, random);
  ExpectNear(Probabilities(edges, scores, 3), Reference(edges, scores), 1e-5);
  ExpectNear(Probabilities(edges, scores, 3, 0.25), Reference(edges, scores, 0.25), 1e-5);
  ExpectNear(Probabilities(edges, scores, 3, 0), Reference(edges, scores, 0), 1e-6);
}

TEST(MeanFieldTest, GivesTheSameBitsWhateverTheNumberOfThreads) {
  FixedRandom random(3);
  const Edges edges = RandomEdges(5000, 20'000, random);
  const NodeMatrix scores = RandomScores(5000, 5, random);
  const NodeMatrix once = Probabilities(edges, scores, 1);
  for (const int threads : {2, 3, 8}) {
    EXPECT_EQ(Probabilities(edges, scores, threads), once) << threads;
  }
}

TEST(MeanFieldTest, IsTheSoftmaxOfTheScoresWithoutEdges) {
  Edges edges;
  edges.offsets = {0, 0, 0};
  NodeMatrix scores(2, 2);
  scores << 1, 0, -2, 1;
  const NodeMatrix q = Probabilities(edges, scores, 1);
  EXPECT_NEAR(q(0, 0), 1 / (1 + std::exp(-1)), 1e-6);
  EXPECT_NEAR(q(1, 1), 1 / (1 + std::exp(-3)), 1e-6);
}

TEST(MeanFieldTest, LetsIsolatedNodesKeepTheirOwn) {
  Edges edges;  // 0 - 1, and 2
  edges.offsets = {0, 1, 2, 2};
  edges.neighbours = {1, 0};
  NodeMatrix scores(3, 2);
  scores << 1, 0, 0, 1, 0.5, 0;
  EXPECT_NEAR(Probabilities(edges, scores, 1)(2, 0), 1 / (1 + std::exp(-0.5)), 1e-6);
}

TEST(MeanFieldTest, TakesNoNodesAtAll) { EXPECT_EQ(MeanField(Edges().view(), NodeMatrix(0, 3), 1, 2).rows(), 0); }

TEST(MeanFieldTest, IsSureOfTheOnlyClass) {
  FixedRandom random(4);
  const Edges edges = RandomEdges(20, 40, random);
  EXPECT_EQ(Probabilities(edges, RandomScores(20, 1, random), 2), NodeMatrix::Ones(20, 1));
}

void ExpectProbabilities(const NodeMatrix& q) {
  for (int64_t i = 0; i < q.rows(); ++i) {
    ASSERT_NEAR(q.row(i).sum(), 1, 1e-5);
    ASSERT_GE(q.row(i).minCoeff(), 0);
    ASSERT_LE(q.row(i).maxCoeff(), 1);
  }
}

TEST(MeanFieldTest, StaysFiniteWithHugeScoresAndClassesThatNobodyHas) {
  FixedRandom random(5);
  const Edges edges = RandomEdges(200, 800, random);
  for (const float size : {0.0F, 1.0F, 1e4F, 1e25F}) {
    NodeMatrix scores = size * RandomScores(200, 4, random);
    scores.col(3).setConstant(-size);
    ExpectProbabilities(Probabilities(edges, scores, 2));
  }
}

// The sum of so many messages needs more than a float. Leaves of one class send the same message, so its rounding adds
// up: 33,333 times 3e-8.
TEST(MeanFieldTest, KeepsItsPrecisionAroundAHub) {
  constexpr int32_t kLeaves = 100'000;
  Edges edges;
  for (int32_t leaf = 1; leaf <= kLeaves; ++leaf) {
    edges.neighbours.push_back(leaf);
  }
  edges.offsets.push_back(kLeaves);
  for (int32_t leaf = 1; leaf <= kLeaves; ++leaf) {
    edges.neighbours.push_back(0);
    edges.offsets.push_back(kLeaves + leaf);
  }
  NodeMatrix scores = NodeMatrix::Zero(kLeaves + 1, 3);
  scores(0, 2) = 1e-3F;
  for (int32_t leaf = 1; leaf <= kLeaves; ++leaf) {
    scores(leaf, leaf % 3) = 1;
  }
  ExpectNear(Probabilities(edges, scores, 2), Reference(edges, scores), 1e-3);
}

}  // namespace
}  // namespace dpar
