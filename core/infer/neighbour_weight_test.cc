#include "core/infer/neighbour_weight.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/infer/mean_field.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

struct Edges {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> neighbours;

  [[nodiscard]] EdgesView view() const { return {offsets, neighbours}; }
};

// Nodes of the groups 0 and 1, in turns; most edges are within a group.
Edges TwoGroups(int32_t nodes, int64_t edges, FixedRandom& random) {
  std::vector<std::set<int32_t>> rows(static_cast<size_t>(nodes));
  for (int64_t i = 0; i < edges; ++i) {
    const auto from = static_cast<int32_t>(UniformBelow(random, static_cast<uint64_t>(nodes)));
    auto to = static_cast<int32_t>(UniformBelow(random, static_cast<uint64_t>(nodes)));
    if (to % 2 != from % 2 && UniformReal(random) < 0.9) {
      to ^= 1;
    }
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

// Scores 2 H that speak for class 0 but in a third of group 1: enough for mean-field to take the group for a class.
NodeMatrix OneClass(int32_t nodes) {
  NodeMatrix scores(nodes, 2);
  for (int32_t node = 0; node < nodes; ++node) {
    const bool other = node % 2 == 1 && node % 3 == 0;
    scores.row(node) << (other ? -1.5F : 1.5F), (other ? 1.5F : -1.5F);
  }
  return scores;
}

// Scores of which each tells its node's group two times in three.
NodeMatrix TwoClasses(int32_t nodes, FixedRandom& random) {
  NodeMatrix scores(nodes, 2);
  for (int32_t node = 0; node < nodes; ++node) {
    const bool first = (node % 2 == 0) == (UniformReal(random) < 2.0 / 3);
    scores.row(node) << (first ? 0.7F : -0.7F), (first ? -0.7F : 0.7F);
  }
  return scores;
}

double ShareOf(const NodeMatrix& scores, int32_t group, Eigen::Index label) {
  double found = 0;
  double count = 0;
  for (int64_t node = group; node < scores.rows(); node += 2) {
    Eigen::Index best = 0;
    scores.row(node).maxCoeff(&best);
    found += best == label ? 1 : 0;
    ++count;
  }
  return found / count;
}

const std::vector<double> kShifted = {0.1, -0.1};

TEST(HearNeighboursTest, IsMeanFieldWhereNoShiftWasFound) {
  FixedRandom random(1);
  const Edges edges = TwoGroups(1000, 8000, random);
  for (const NodeMatrix& scores : {OneClass(1000), TwoClasses(1000, random)}) {
    const HeardNeighbours heard = HearNeighbours(edges.view(), scores, {}, 2, 2);
    EXPECT_EQ(heard.weight, 1);
    EXPECT_EQ(heard.scores, MeanField(edges.view(), scores, 1, 1));
  }
}

TEST(HearNeighboursTest, HearsThemInFullWhereFeaturesAgree) {
  FixedRandom random(2);
  const Edges edges = TwoGroups(1000, 8000, random);
  const HeardNeighbours heard = HearNeighbours(edges.view(), TwoClasses(1000, random), kShifted, 2, 2);
  EXPECT_EQ(heard.weight, 1);
  EXPECT_GT(ShareOf(heard.scores, 0, 0), 0.99);
  EXPECT_GT(ShareOf(heard.scores, 1, 1), 0.99);
}

TEST(HearNeighboursTest, HearsThemLessWhereTheyTakeAGroupForAClass) {
  FixedRandom random(3);
  const Edges edges = TwoGroups(1000, 8000, random);
  const NodeMatrix scores = OneClass(1000);
  EXPECT_GT(ShareOf(MeanField(edges.view(), scores, 1, 1), 1, 1), 0.9) << "what would be wrong";
  const HeardNeighbours heard = HearNeighbours(edges.view(), scores, kShifted, 2, 2);
  EXPECT_LT(heard.weight, 0.5);
  EXPECT_LT(ShareOf(heard.scores, 1, 1), 0.35);
}

TEST(HearNeighboursTest, GivesTheSameBitsWhateverTheNumberOfThreads) {
  FixedRandom random(4);
  const Edges edges = TwoGroups(2000, 16'000, random);
  const NodeMatrix scores = OneClass(2000);
  const HeardNeighbours once = HearNeighbours(edges.view(), scores, kShifted, 1.3, 1);
  for (const int threads : {2, 5}) {
    const HeardNeighbours again = HearNeighbours(edges.view(), scores, kShifted, 1.3, threads);
    EXPECT_EQ(again.weight, once.weight);
    EXPECT_EQ(again.scores, once.scores);
  }
}

TEST(HearNeighboursTest, TakesGraphsWithoutEdgesAndWithoutNodes) {
  Edges edges;
  EXPECT_EQ(HearNeighbours(edges.view(), NodeMatrix(0, 2), kShifted, 2, 1).scores.rows(), 0);
  edges.offsets = {0, 0};
  NodeMatrix scores(1, 2);
  scores << 1, 3;
  NodeMatrix expected(1, 2);
  expected << -2, 0;
  const HeardNeighbours heard = HearNeighbours(edges.view(), scores, kShifted, 2, 1);
  EXPECT_EQ(heard.scores, expected);
}

TEST(TemperScoresTest, CountsNeighboursByTheRootOfTheirNumber) {
  Edges edges;  // 0 - 1, 0 - 2, 0 - 3
  edges.offsets = {0, 3, 4, 5, 6};
  edges.neighbours = {1, 2, 3, 0, 0, 0};
  NodeMatrix scores = NodeMatrix::Ones(4, 2);
  TemperScores(edges.view(), 2, 1, 1, scores);
  EXPECT_FLOAT_EQ(scores(0, 0), 0.25F);
  EXPECT_FLOAT_EQ(scores(1, 1), static_cast<float>(0.5 / std::sqrt(2)));
  scores = NodeMatrix::Ones(4, 2);
  TemperScores(edges.view(), 0.5, 0, 1, scores);
  EXPECT_EQ(scores, NodeMatrix::Ones(4, 2)) << "noise has tempered such scores enough";
}

}  // namespace
}  // namespace dpar
