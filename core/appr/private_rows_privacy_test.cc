// What private rows reveal: the distributions that the mechanisms have, the sensitivities that they claim, and the
// events that they are charged as. Streams are fixed, so a false-alarm rate below is the chance that the stream chosen
// once was an unlucky one.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/appr/private_rows.h"
#include "core/appr/testing/drawn_rows.h"
#include "core/appr/testing/small_graphs.h"
#include "core/appr/testing/unpriced_rows.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::ClearOptions;
using ::dpar::testing::ColumnsOf;
using ::dpar::testing::DenseRow;
using ::dpar::testing::Drawn;
using ::dpar::testing::ExactRows;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::GraphOf;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::kMechanisms;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::kTolerance;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::NeverCancel;
using ::dpar::testing::NormalCdf;
using ::dpar::testing::OptionsFor;
using ::dpar::testing::RandomGraph;
using ::dpar::testing::RowOfSeed;
using ::dpar::testing::Star;
using ::dpar::testing::ValuesOf;
using ::dpar::testing::WithNullNode;

double Norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

std::vector<double> Difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference;
  for (size_t i = 0; i < a.size(); ++i) {
    difference.push_back(a[i] - b[i]);
  }
  return difference;
}

// Null slots.

// A star around slot 0, whose centre is null if asked.
Graph StarWithCentre(bool null) {
  Graph graph = Star(5);
  if (null) {
    graph.labels[0] = kUnlabelled;
  }
  return graph;
}

struct CentreRows {
  std::vector<int64_t> counts;  // by slot
  std::vector<double> values;
};

CentreRows DrawCentre(const Graph& graph, const PrivateRowsOptions& options, int rounds) {
  FixedRandom random(14);
  CentreRows result;
  result.counts.assign(static_cast<size_t>(graph.sizes.node_count), 0);
  for (int round = 0; round < rounds; ++round) {
    const auto rows = DrawUnpricedRows(graph, options, 1, random, NeverCancel);
    const size_t row = RowOfSeed(*rows, 0);
    ++result.counts[static_cast<size_t>(ColumnsOf(*rows, row).at(0))];
    result.values.push_back(ValuesOf(*rows, row).at(0));
  }
  return result;
}

constexpr int kRounds = 20'000;

TEST(NullSeedTest, ASlotWithEdgesButWithoutFeaturesAndLabelIsNull) {
  EXPECT_TRUE(GraphView(StarWithCentre(true)).IsNull(0));
  PrivateRowsOptions options = ClearOptions(ApprMechanism::kGm, 6, 6, 1);
  const ApprRows null = Drawn(StarWithCentre(true), options, 15);
  EXPECT_LT(Norm(ValuesOf(null, RowOfSeed(null, 0))), kTolerance);
  EXPECT_GT(Norm(ValuesOf(null, RowOfSeed(null, 1))), 0.1) << "its neighbours still reach through it";
  const ApprRows other = Drawn(StarWithCentre(false), options, 15);
  EXPECT_GT(Norm(ValuesOf(other, RowOfSeed(other, 0))), 0.1);
}

TEST(NullSeedTest, FeaturesAloneMakeASlotCount) {
  Graph graph = StarWithCentre(true);
  graph.features.offsets.assign(7, 1);
  graph.features.offsets[0] = 0;
  graph.features.columns = {0};
  graph.features.values = {1};
  const ApprRows rows = Drawn(graph, ClearOptions(ApprMechanism::kGm, 6, 6, 1), 15);
  EXPECT_GT(Norm(ValuesOf(rows, RowOfSeed(rows, 0))), 0.1);
}

TEST(NullSeedTest, ASelfLoopDoesNotMakeANullSlotCount) {
  PrivateRowsOptions options = ClearOptions(ApprMechanism::kGm, 6, 6, 1);
  options.solver.self_loops = true;
  const ApprRows rows = Drawn(StarWithCentre(true), options, 15);
  EXPECT_LT(Norm(ValuesOf(rows, RowOfSeed(rows, 0))), kTolerance);
}

TEST(NullSeedTest, GmShowsTheLargestOfPureNoise) {
  PrivateRowsOptions options = OptionsFor(ApprMechanism::kGm, 6, 1);
  const auto largest_of_six = [&options](double x) { return std::pow(NormalCdf(x / options.noise), 6); };
  const CentreRows null = DrawCentre(StarWithCentre(true), options, kRounds);
  // False-alarm rates 1e-6 and 7.5e-6.
  EXPECT_GT(ChiSquareTail(null.counts), kUnlikely);
  EXPECT_LT(KolmogorovStatistic(null.values, largest_of_six), kKolmogorovLimit);
  const CentreRows other = DrawCentre(StarWithCentre(false), options, kRounds);
  EXPECT_LT(ChiSquareTail(other.counts), kUnlikely);
  EXPECT_GT(KolmogorovStatistic(other.values, largest_of_six), kKolmogorovLimit);
}

TEST(NullSeedTest, EmChoosesUniformlyAndItsValuesAreLaplace) {
  const PrivateRowsOptions options = OptionsFor(ApprMechanism::kEm1, 6, 1);
  const CentreRows null = DrawCentre(StarWithCentre(true), options, kRounds);
  // False-alarm rates 1e-6 and 7.5e-6.
  EXPECT_GT(ChiSquareTail(null.counts), kUnlikely);
  EXPECT_LT(KolmogorovStatistic(null.values,
                                [&options](double x) {
                                  const double tail = std::exp(-std::abs(x) / options.value_noise) / 2;
                                  return x < 0 ? tail : 1 - tail;
                                }),
            kKolmogorovLimit);
}

TEST(NullSeedTest, AllOfAGmRowTogetherAreNormals) {
  const Graph graph = GraphOf(200, {});
  const PrivateRowsOptions options = OptionsFor(ApprMechanism::kGm, 200, 200);
  const ApprRows rows = Drawn(graph, options, 17);
  ASSERT_EQ(rows.values.size(), 40'000U);
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(rows.values, [&options](double x) { return NormalCdf(x / options.noise); }),
            kKolmogorovLimit);
}

// What the mechanisms do to a row.

TEST(GaussianRowsTest, ShowTheLargestEntriesWhenNothingIsClippedAndNoiseIsTiny) {
  FixedRandom random(18);
  const Graph graph = RandomGraph(200, 500, random);
  const ApprRows rows = Drawn(graph, ClearOptions(ApprMechanism::kGm, 100, 5, 1), 19);
  const auto exact = ExactRows(graph.edges(), OptionsFor(ApprMechanism::kGm, 1, 1).solver, rows.seeds);
  for (size_t row = 0; row < exact.size(); ++row) {
    std::vector<double> descending = exact[row];
    std::sort(descending.rbegin(), descending.rend());
    const std::vector<int32_t> columns = ColumnsOf(rows, row);
    const std::vector<double> values = ValuesOf(rows, row);
    for (size_t i = 0; i < columns.size(); ++i) {
      const double value = exact[row][static_cast<size_t>(columns[i])];
      EXPECT_NEAR(values[i], value, kTolerance);
      EXPECT_GE(value, descending[4] - kTolerance) << "not among the five largest";
    }
  }
}

TEST(GaussianRowsTest, AreScaledToTheClipWhenTheyAreLongerAndNotOtherwise) {
  FixedRandom random(20);
  int64_t scaled = 0;
  int64_t kept = 0;
  for (int round = 0; round < 10; ++round) {
    const Graph graph = RandomGraph(100, 150, random);
    for (const double clip : {0.01, 0.45}) {
      const ApprRows rows = Drawn(graph, ClearOptions(ApprMechanism::kGm, 100, 100, clip), 21);
      const auto exact = ExactRows(graph.edges(), OptionsFor(ApprMechanism::kGm, 1, 1).solver, rows.seeds);
      for (size_t row = 0; row < exact.size(); ++row) {
        const std::vector<double> released = DenseRow(rows, row);
        const double norm = Norm(exact[row]);
        EXPECT_LE(Norm(released), clip * (1 + kTolerance));
        std::vector<double> expected = exact[row];
        for (double& value : expected) {
          value *= std::min(1.0, norm > 0 ? clip / norm : 1);
        }
        EXPECT_LE(Norm(Difference(released, expected)), clip * kTolerance);
        ++(norm > clip ? scaled : kept);
      }
    }
  }
  EXPECT_GT(scaled, 500);
  EXPECT_GT(kept, 100);
}

TEST(ExponentialRowsTest, Em1ValuesAreTheClippedEntriesWhenNoiseIsTiny) {
  FixedRandom random(22);
  const Graph graph = RandomGraph(100, 200, random);
  for (const double clip : {1e-3, 0.05, 1.0}) {
    const ApprRows rows = Drawn(graph, ClearOptions(ApprMechanism::kEm1, 100, 6, clip), 23);
    const auto exact = ExactRows(graph.edges(), OptionsFor(ApprMechanism::kEm1, 1, 1).solver, rows.seeds);
    for (size_t row = 0; row < exact.size(); ++row) {
      std::vector<double> clipped = exact[row];
      for (double& value : clipped) {
        value = std::min(value, clip);
      }
      std::vector<double> descending = clipped;
      std::sort(descending.rbegin(), descending.rend());
      const std::vector<int32_t> columns = ColumnsOf(rows, row);
      const std::vector<double> values = ValuesOf(rows, row);
      for (size_t i = 0; i < columns.size(); ++i) {
        const double value = clipped[static_cast<size_t>(columns[i])];
        EXPECT_NEAR(values[i], value, clip * kTolerance);
        EXPECT_GE(value, descending[5] - clip * kTolerance) << "not among the six largest";
      }
    }
  }
}

TEST(ExponentialRowsTest, EntriesAboveTheClipAreEquallyLikely) {
  // A triangle beside two slots on their own. From a corner, its own entry is larger than the two others, but all three
  // are above the clip. With beta a third of the clip each is chosen with probability e^3 / (3 e^3 + 2), and each of
  // the slots outside with 1 / (3 e^3 + 2).
  const Graph graph = GraphOf(5, {{0, 1}, {1, 2}, {0, 2}});
  PrivateRowsOptions options = OptionsFor(ApprMechanism::kEm0, 5, 1);
  options.noise = options.clip / 3;
  FixedRandom random(24);
  std::vector<int64_t> counts(5, 0);
  for (int round = 0; round < 2 * kRounds; ++round) {
    const ApprRows rows = DrawUnpricedRows(graph, options, 1, random, NeverCancel).value();
    for (const int32_t corner : {0, 1, 2}) {
      // By how far the chosen slot is from the corner, so that the corner itself would stand out.
      const int32_t column = ColumnsOf(rows, RowOfSeed(rows, corner)).at(0);
      ++counts[static_cast<size_t>(column < 3 ? (column - corner + 3) % 3 : column)];
    }
  }
  const double draws = 6 * kRounds;
  const double inside = draws * std::exp(3) / (3 * std::exp(3) + 2);
  const double outside = draws / (3 * std::exp(3) + 2);
  const std::vector<double> expected = {inside, inside, inside, outside, outside};
  // False-alarm rate 1e-6; a scale that is wrong by 5% is found.
  EXPECT_GT(ChiSquareTail(counts, expected), kUnlikely);
}

// What they cost.

TEST(PrivateRowsEventTest, GmIsOneGaussianOfAllRows) {
  for (const int64_t rows : {1, 2, 70, 100'000}) {
    for (const double clip : {0.01, 0.3, 1.0}) {
      PrivateRowsOptions options = OptionsFor(ApprMechanism::kGm, rows, 4);
      options.clip = clip;
      const v1::PrivacyEvent event = PrivateRowsEvent(options, 200'000).value();
      ASSERT_TRUE(event.has_gaussian());
      const long double sensitivity = std::sqrt(2.0L * static_cast<long double>(rows)) * static_cast<long double>(clip);
      EXPECT_GE(static_cast<long double>(event.gaussian().sensitivity()), sensitivity * (1 - 0x1p-53L));
      EXPECT_LE(static_cast<long double>(event.gaussian().sensitivity()), sensitivity * (1 + 0x1p-50L));
      EXPECT_EQ(event.gaussian().noise_stddev(), 0.02);
      EXPECT_EQ(event.gaussian().count(), 1);
    }
  }
}

TEST(PrivateRowsEventTest, Em0IsOneSelectionForEveryEntry) {
  const v1::PrivacyEvent event = PrivateRowsEvent(OptionsFor(ApprMechanism::kEm0, 70, 4), 1000).value();
  ASSERT_TRUE(event.has_repetition());
  EXPECT_EQ(event.repetition().count(), 280);
  ASSERT_TRUE(event.repetition().event().has_bounded_range());
  EXPECT_DOUBLE_EQ(event.repetition().event().bounded_range().range(), 1);  // 2 * 0.01 / 0.02
}

TEST(PrivateRowsEventTest, Em1IsASelectionAndALaplaceForEveryEntry) {
  const v1::PrivacyEvent event = PrivateRowsEvent(OptionsFor(ApprMechanism::kEm1, 7, 3), 1000).value();
  ASSERT_TRUE(event.has_composition());
  ASSERT_EQ(event.composition().events_size(), 2);
  const v1::RepetitionEvent& selections = event.composition().events(0).repetition();
  EXPECT_EQ(selections.count(), 21);
  EXPECT_DOUBLE_EQ(selections.event().bounded_range().range(), 1);
  const v1::RepetitionEvent& values = event.composition().events(1).repetition();
  EXPECT_EQ(values.count(), 21);
  EXPECT_EQ(values.event().laplace().sensitivity(), 0.01);
  EXPECT_EQ(values.event().laplace().scale(), 0.03);
}

TEST(PrivateRowsEventTest, IsTheSameForEveryGraphAndSolver) {
  for (const ApprMechanism mechanism : kMechanisms) {
    PrivateRowsOptions options = OptionsFor(mechanism, 10, 4);
    const std::string event = PrivateRowsEvent(options, 10).value().SerializeAsString();
    options.solver = {.alpha = 0.5, .rho = 0.1, .gamma = 1e-2, .self_loops = true};
    EXPECT_EQ(PrivateRowsEvent(options, 1'000'000).value().SerializeAsString(), event);
  }
}

// The sensitivities that the events claim, seen where noise hides nothing and every slot is shown: a row of one graph
// against that of the graph with one node made null.
struct Neighbours {
  ApprRows with;
  ApprRows without;
};

std::vector<Neighbours> DrawNeighbours(ApprMechanism mechanism, double clip) {
  FixedRandom random(25);
  std::vector<Neighbours> pairs;
  for (int round = 0; round < 40; ++round) {
    const Graph graph = RandomGraph(40, 10 + 5 * round, random);
    // By turns any node and the one with the most neighbours.
    int32_t removed = round;
    for (int32_t node = 0; node < 40 && round % 2 == 0; ++node) {
      if (graph.edges().neighbours_of(node).size() > graph.edges().neighbours_of(removed).size()) {
        removed = node;
      }
    }
    PrivateRowsOptions options = ClearOptions(mechanism, 40, 40, clip);
    options.solver.self_loops = round % 4 == 3;
    const auto stream = static_cast<uint64_t>(round);
    pairs.push_back({Drawn(graph, options, stream), Drawn(WithNullNode(graph, removed), options, stream)});
    EXPECT_EQ(pairs.back().with.seeds, pairs.back().without.seeds);
  }
  return pairs;
}

TEST(SensitivityTest, GmRowsOfNeighboursAreWithinTheClipTimesTheSquareRootOfTwo) {
  for (const double clip : {1e-3, 0.01, 0.5}) {
    double largest = 0;
    for (const auto& [with, without] : DrawNeighbours(ApprMechanism::kGm, clip)) {
      for (size_t row = 0; row < with.seeds.size(); ++row) {
        const double distance = Norm(Difference(DenseRow(with, row), DenseRow(without, row)));
        EXPECT_LE(distance, std::sqrt(2) * clip * (1 + kTolerance));
        largest = std::max(largest, distance);
      }
      EXPECT_LE(Norm(Difference(with.values, without.values)), std::sqrt(2 * 40) * clip * (1 + kTolerance));
    }
    EXPECT_GT(largest, clip * (1 - kTolerance)) << "the row of the node itself was not compared";
  }
}

TEST(SensitivityTest, ARowCanMoveByMoreThanTheClip) {
  // From the leaf of a path that ends in a hub: without the hub, all of it stays on the path. The clip alone would not
  // bound the distance; the square root of two is needed.
  std::vector<std::pair<int32_t, int32_t>> edges = {{0, 1}, {1, 2}};
  for (int32_t leaf = 3; leaf < 40; ++leaf) {
    edges.emplace_back(1, leaf);
  }
  const Graph graph = GraphOf(40, edges);
  PrivateRowsOptions options = ClearOptions(ApprMechanism::kGm, 40, 40, 0.01);
  options.solver = {.alpha = 0.02, .rho = 1e-6, .self_loops = true};
  const ApprRows with = Drawn(graph, options, 26);
  const ApprRows without = Drawn(WithNullNode(graph, 1), options, 26);
  const size_t row = RowOfSeed(with, 0);
  const double distance = Norm(Difference(DenseRow(with, row), DenseRow(without, row)));
  EXPECT_GT(distance, 1.2 * 0.01);
  EXPECT_LE(distance, std::sqrt(2) * 0.01 * (1 + kTolerance));
}

TEST(SensitivityTest, EmEntriesOfNeighboursAreWithinTheClip) {
  for (const double clip : {1e-3, 0.01, 0.5}) {
    double largest = 0;
    for (const auto& [with, without] : DrawNeighbours(ApprMechanism::kEm1, clip)) {
      ASSERT_EQ(with.columns, without.columns) << "K = N shows every slot";
      for (size_t i = 0; i < with.values.size(); ++i) {
        for (const double value : {with.values[i], without.values[i]}) {
          EXPECT_GE(value, -clip * kTolerance);
          EXPECT_LE(value, clip * (1 + kTolerance));
        }
        largest = std::max(largest, std::abs(with.values[i] - without.values[i]));
      }
    }
    EXPECT_LE(largest, clip * (1 + kTolerance));
    EXPECT_GT(largest, clip * (1 - kTolerance)) << "the row of the node itself was not compared";
  }
}

}  // namespace
}  // namespace dpar
