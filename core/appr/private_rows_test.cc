#include "core/appr/private_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/appr/testing/drawn_rows.h"
#include "core/appr/testing/small_graphs.h"
#include "core/appr/testing/unpriced_rows.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/random/lattice.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::ClearOptions;
using ::dpar::testing::ColumnsOf;
using ::dpar::testing::Dense;
using ::dpar::testing::DenseRow;
using ::dpar::testing::Drawn;
using ::dpar::testing::ExactRows;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::GraphOf;
using ::dpar::testing::kMechanisms;
using ::dpar::testing::kTinyNoise;
using ::dpar::testing::kTolerance;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::NeverCancel;
using ::dpar::testing::OptionsFor;
using ::dpar::testing::RandomGraph;
using ::dpar::testing::Star;
using ::dpar::testing::Summary;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::UnorderedElementsAreArray;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void ExpectSame(const ApprRows& a, const ApprRows& b) {
  EXPECT_EQ(a.node_count, b.node_count);
  EXPECT_EQ(a.seeds, b.seeds);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.columns, b.columns);
  EXPECT_EQ(a.values, b.values);
}

// Seeds.

TEST(DrawSeedsTest, AreDistinctSlotsAsManyAsAsked) {
  FixedRandom random(1);
  for (const int64_t rows : {1, 2, 50, 100}) {
    const std::vector<int32_t> seeds = DrawSeeds(100, rows, random);
    EXPECT_EQ(std::set<int32_t>(seeds.begin(), seeds.end()).size(), static_cast<size_t>(rows));
    EXPECT_THAT(seeds, Each(AllOf(Ge(0), Le(99))));
  }
  EXPECT_THAT(DrawSeeds(1, 1, random), ElementsAre(0));
}

TEST(DrawSeedsTest, AreUniformAmongSequences) {
  constexpr size_t kNodes = 6;
  FixedRandom random(2);
  std::vector<int64_t> counts(kNodes * kNodes, 0);
  for (int round = 0; round < 100'000; ++round) {
    const std::vector<int32_t> seeds = DrawSeeds(kNodes, 2, random);
    ++counts[static_cast<size_t>(seeds[0]) * kNodes + static_cast<size_t>(seeds[1])];
  }
  for (size_t slot = kNodes; slot-- > 0;) {
    const auto twice = counts.begin() + static_cast<std::ptrdiff_t>(slot * kNodes + slot);
    EXPECT_EQ(*twice, 0);
    counts.erase(twice);
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts), kUnlikely);
}

TEST(DrawPrivateRowsTest, SeedsDependOnTheStreamAndNotOnTheGraph) {
  FixedRandom edges(3);
  std::vector<Graph> graphs = {RandomGraph(50, 600, edges), GraphOf(50, {}), RandomGraph(50, 60, edges)};
  graphs[2].labels.assign(50, kUnlabelled);
  FixedRandom random(4);
  const std::vector<int32_t> seeds = DrawSeeds(50, 20, random);
  for (const ApprMechanism mechanism : kMechanisms) {
    for (const Graph& graph : graphs) {
      EXPECT_EQ(Drawn(graph, OptionsFor(mechanism, 20, 3), 4).seeds, seeds);
    }
  }
  EXPECT_NE(Drawn(graphs[0], OptionsFor(ApprMechanism::kGm, 20, 3), 5).seeds, seeds);
}

TEST(DrawPrivateRowsTest, NullSlotsAreSeedsAsOftenAsOthers) {
  FixedRandom random(6);
  Graph graph = RandomGraph(8, 12, random);
  std::fill(graph.labels.begin(), graph.labels.begin() + 4, kUnlabelled);
  std::vector<int64_t> counts(8, 0);
  for (int round = 0; round < 10'000; ++round) {
    const auto rows = DrawUnpricedRows(graph, OptionsFor(ApprMechanism::kEm0, 1, 1), 1, random, NeverCancel);
    ++counts[static_cast<size_t>(rows->seeds.at(0))];
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts), kUnlikely);
}

// The shape of what is released.

TEST(DrawPrivateRowsTest, EveryRowHasKDistinctAscendingColumns) {
  FixedRandom random(7);
  const Graph graph = RandomGraph(40, 100, random);
  for (const ApprMechanism mechanism : kMechanisms) {
    for (const int64_t k : {1, 7, 40}) {
      const ApprRows rows = Drawn(graph, OptionsFor(mechanism, 30, k), 8);
      EXPECT_EQ(rows.node_count, 40);
      ASSERT_EQ(rows.offsets.size(), 31U);
      EXPECT_EQ(rows.offsets.front(), 0);
      for (size_t row = 0; row < 30; ++row) {
        const std::vector<int32_t> columns = ColumnsOf(rows, row);
        EXPECT_EQ(static_cast<int64_t>(columns.size()), k);
        EXPECT_TRUE(std::is_sorted(columns.begin(), columns.end()));
        EXPECT_EQ(std::adjacent_find(columns.begin(), columns.end()), columns.end());
        EXPECT_THAT(columns, Each(AllOf(Ge(0), Le(39))));
      }
      EXPECT_EQ(rows.columns.size(), rows.values.size());
    }
  }
}

void ExpectOnLattice(const std::vector<double>& values, double noise) {
  const double step = LatticeStep(noise, kApprLatticeBits);
  for (const double value : values) {
    EXPECT_EQ(std::fmod(value, step), 0) << value;
  }
}

TEST(DrawPrivateRowsTest, ValuesAreMultiplesOfTheLatticeStep) {
  FixedRandom random(9);
  const Graph graph = RandomGraph(60, 200, random);
  for (const double clip : {1e-3, 0.3, 7.0}) {
    for (const double noise : {clip / 3, clip * 11, clip * kTinyNoise}) {
      PrivateRowsOptions gm = OptionsFor(ApprMechanism::kGm, 60, 10);
      gm.clip = clip;
      gm.noise = noise;
      ExpectOnLattice(Drawn(graph, gm, 10).values, noise);
      PrivateRowsOptions em = OptionsFor(ApprMechanism::kEm1, 60, 10);
      em.clip = clip;
      em.noise = clip;
      em.value_noise = noise;
      ExpectOnLattice(Drawn(graph, em, 11).values, noise);
    }
  }
}

TEST(DrawPrivateRowsTest, Em0ValuesAreOneOverK) {
  FixedRandom random(12);
  const Graph graph = RandomGraph(30, 60, random);
  for (const int64_t k : {1, 3, 7, 30}) {
    EXPECT_THAT(Drawn(graph, OptionsFor(ApprMechanism::kEm0, 30, k), 13).values, Each(1.0 / static_cast<double>(k)));
  }
}

// Threads and blocks.

TEST(DrawPrivateRowsTest, DoesNotDependOnTheNumberOfThreads) {
  FixedRandom random(27);
  const Graph graph = RandomGraph(1500, 4000, random);
  for (const ApprMechanism mechanism : kMechanisms) {
    const PrivateRowsOptions options = OptionsFor(mechanism, 1100, 3);
    const ApprRows alone = Drawn(graph, options, 28, 1);
    ExpectSame(Drawn(graph, options, 28, 2), alone);
    ExpectSame(Drawn(graph, options, 28, 5), alone);
    EXPECT_NE(Drawn(graph, options, 29, 1).columns, alone.columns);
  }
}

TEST(DrawPrivateRowsTest, EveryRowIsOfItsOwnSeedAlsoPastABlockOfRows) {
  FixedRandom random(30);
  const Graph graph = RandomGraph(2500, 6000, random);
  for (const int64_t row_count : {1023, 1024, 1025, 2049}) {
    const ApprRows rows = Drawn(graph, ClearOptions(ApprMechanism::kGm, row_count, 1, 1), 31, 2);
    ASSERT_EQ(static_cast<int64_t>(rows.seeds.size()), row_count);
    ASSERT_EQ(static_cast<int64_t>(rows.columns.size()), row_count);
    const auto exact = ExactRows(graph.edges(), OptionsFor(ApprMechanism::kGm, 1, 1).solver, rows.seeds);
    for (size_t row = 0; row < exact.size(); ++row) {
      const double largest = *std::max_element(exact[row].begin(), exact[row].end());
      EXPECT_NEAR(rows.values[row], largest, kTolerance);
      EXPECT_NEAR(exact[row][static_cast<size_t>(rows.columns[row])], largest, kTolerance);
    }
  }
}

TEST(DrawPrivateRowsTest, RowsOfDifferentBlocksHaveDifferentNoise) {
  const ApprRows rows = Drawn(GraphOf(2100, {}), OptionsFor(ApprMechanism::kGm, 2100, 1), 32);
  std::vector<double> values = rows.values;
  std::sort(values.begin(), values.end());
  // 2100 values near 3.5 standard deviations with steps of 2^-24 of one: a few may be equal by chance, not half.
  EXPECT_GT(std::unique(values.begin(), values.end()) - values.begin(), 2080);
}

TEST(DrawPrivateRowsTest, WorksOnTheSmallestGraph) {
  for (const ApprMechanism mechanism : kMechanisms) {
    const ApprRows rows = Drawn(GraphOf(1, {}), OptionsFor(mechanism, 1, 1), 33, 3);
    EXPECT_THAT(rows.seeds, ElementsAre(0));
    EXPECT_THAT(rows.columns, ElementsAre(0));
    EXPECT_THAT(rows.offsets, ElementsAre(0, 1));
  }
}

// Progress.

TEST(RowsCallbackTest, CountsEveryRowOnce) {
  FixedRandom random(34);
  const Graph graph = RandomGraph(1200, 2000, random);
  std::vector<int64_t> expected(1100);
  std::iota(expected.begin(), expected.end(), 1);
  for (const int threads : {1, 4}) {
    std::mutex mutex;
    std::vector<int64_t> counts;
    const auto note = [&](int64_t rows_done) {
      const std::lock_guard<std::mutex> lock(mutex);
      counts.push_back(rows_done);
      return true;
    };
    ASSERT_TRUE(DrawUnpricedRows(graph, OptionsFor(ApprMechanism::kGm, 1100, 2), threads, random, note).ok());
    EXPECT_THAT(counts, UnorderedElementsAreArray(expected));
    if (threads == 1) {
      EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end()));
    }
  }
}

TEST(RowsCallbackTest, FalseCancelsAtOnce) {
  FixedRandom random(35);
  const Graph graph = RandomGraph(1500, 2000, random);
  for (const int64_t last : {1, 500, 1030, 1100}) {
    int64_t calls = 0;
    const auto rows = DrawUnpricedRows(graph, OptionsFor(ApprMechanism::kEm0, 1100, 2), 1, random, [&](int64_t done) {
      ++calls;
      return done < last;
    });
    EXPECT_EQ(rows.status().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(calls, last);
  }
  const auto rows = DrawUnpricedRows(graph, OptionsFor(ApprMechanism::kEm0, 1100, 2), 3, random,
                                     [](int64_t done) { return done < 100; });
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kCancelled);
}

TEST(RowsCallbackTest, FalseCancelsWithinARowToo) {
  FixedRandom random(36);
  const Graph graph = RandomGraph(3000, 60'000, random);
  PrivateRowsOptions options = OptionsFor(ApprMechanism::kGm, 4, 2);
  options.solver = {.alpha = 0.05, .rho = 1e-10, .gamma = 1e-8};
  for (const int threads : {1, 3}) {
    const auto rows = DrawUnpricedRows(graph, options, threads, random, [](int64_t done) { return done > 0; });
    EXPECT_EQ(rows.status().code(), absl::StatusCode::kCancelled);
    const auto exact =
        SolveRows(graph.edges(), options.solver, {0, 1, 2, 3}, threads, [](int64_t done) { return done > 0; });
    EXPECT_EQ(exact.status().code(), absl::StatusCode::kCancelled);
  }
}

// Bad input.

struct BadOption {
  std::string field;
  std::function<void(PrivateRowsOptions&)> spoil;
  ApprMechanism mechanism = ApprMechanism::kGm;
};

std::vector<BadOption> BadOptions() {
  std::vector<BadOption> all = {
      {"k", [](auto& options) { options.k = 0; }},
      {"k", [](auto& options) { options.k = -4; }},
      {"k", [](auto& options) { options.k = 21; }},
      {"rows", [](auto& options) { options.rows = 0; }},
      {"rows", [](auto& options) { options.rows = -1; }},
      {"rows", [](auto& options) { options.rows = 21; }},
      {"alpha", [](auto& options) { options.solver.alpha = 1; }},
      {"noise", [](auto& options) { options.noise = options.clip * 1.01e9; }},
      {"noise", [](auto& options) { options.noise = 1.7e308; }},
      {"value_noise", [](auto& options) { options.value_noise = options.clip * 1.01e9; }, ApprMechanism::kEm1},
      {"rho", [](auto& options) { options.solver.rho = 0; }},
      {"gamma", [](auto& options) { options.solver.gamma = kNan; }},
      {"clip", [](auto& options) { options.clip = 0.99e-12; }},
      {"clip", [](auto& options) { options.clip = 1.01e6; }},
      {"noise", [](auto& options) { options.noise = options.clip * kTinyNoise * 0.999; }},
      {"value_noise", [](auto& options) { options.value_noise = 1; }, ApprMechanism::kGm},
      {"value_noise", [](auto& options) { options.value_noise = kNan; }, ApprMechanism::kGm},
      {"value_noise", [](auto& options) { options.value_noise = 1; }, ApprMechanism::kEm0},
      {"value_noise", [](auto& options) { options.value_noise = options.clip * kTinyNoise * 0.999; },
       ApprMechanism::kEm1},
  };
  for (const double value : {0.0, -1.0, kNan, kInfinity}) {
    for (const ApprMechanism mechanism : kMechanisms) {
      all.push_back({"clip", [value](auto& options) { options.clip = value; }, mechanism});
      all.push_back({"noise", [value](auto& options) { options.noise = value; }, mechanism});
    }
    all.push_back({"value_noise", [value](auto& options) { options.value_noise = value; }, ApprMechanism::kEm1});
  }
  return all;
}

TEST(DrawPrivateRowsTest, NamesTheOptionThatIsOutOfRange) {
  FixedRandom random(37);
  const Graph graph = RandomGraph(20, 40, random);
  for (const BadOption& bad : BadOptions()) {
    PrivateRowsOptions options = OptionsFor(bad.mechanism, 5, 3);
    bad.spoil(options);
    const std::string expected = absl::StrCat("INVALID_ARGUMENT INVALID_FIELD field=", bad.field);
    EXPECT_EQ(Summary(DrawPrivateRows(graph, options, 1, random, NeverCancel).status()), expected);
    EXPECT_EQ(Summary(PrivateRowsEvent(options, 20).status()), expected);
  }
}

TEST(DrawPrivateRowsTest, GivesTheRowsAndTheirPrice) {
  FixedRandom random(39);
  const Graph graph = RandomGraph(20, 40, random);
  for (const ApprMechanism mechanism : kMechanisms) {
    const PrivateRowsOptions options = OptionsFor(mechanism, 5, 3);
    FixedRandom stream(40);
    const auto drawn = DrawPrivateRows(graph, options, 1, stream, NeverCancel);
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    const ApprRows unpriced = Drawn(graph, options, 40);
    EXPECT_EQ(drawn->rows.seeds, unpriced.seeds);
    EXPECT_EQ(drawn->rows.columns, unpriced.columns);
    EXPECT_EQ(drawn->rows.values, unpriced.values);
    EXPECT_EQ(drawn->event.SerializeAsString(), PrivateRowsEvent(options, 20)->SerializeAsString());
  }
}

TEST(DrawPrivateRowsTest, DrawsNothingThatHasNoPrice) {
  FixedRandom random(41);
  const Graph graph = RandomGraph(20, 40, random);
  EXPECT_EQ(
      Summary(DrawPrivateRows(graph, ClearOptions(ApprMechanism::kEm0, 5, 3, 0.01), 1, random, NeverCancel).status()),
      "INVALID_ARGUMENT INVALID_FIELD field=noise");
}

TEST(PrivateRowsEventTest, NamesTheNoiseThatHasNoPrice) {
  PrivateRowsOptions options = OptionsFor(ApprMechanism::kEm1, 5, 3);
  options.noise = options.clip / 1000;  // a range of 2000
  EXPECT_EQ(Summary(PrivateRowsEvent(options, 20).status()), "INVALID_ARGUMENT INVALID_FIELD field=noise");
  options = OptionsFor(ApprMechanism::kEm1, 5, 3);
  options.value_noise = options.clip / 2000;
  EXPECT_EQ(Summary(PrivateRowsEvent(options, 20).status()), "INVALID_ARGUMENT INVALID_FIELD field=value_noise");
}

TEST(PrivateRowsEventTest, RefusesMoreEntriesThanMemoryIsMeantToHold) {
  for (const ApprMechanism mechanism : kMechanisms) {
    EXPECT_TRUE(PrivateRowsEvent(OptionsFor(mechanism, 100'000, 1'000), 200'000).ok());
    EXPECT_EQ(Summary(PrivateRowsEvent(OptionsFor(mechanism, 100'000, 1'001), 200'000).status()),
              "INVALID_ARGUMENT INVALID_FIELD field=k");
  }
}

TEST(DrawPrivateRowsTest, RefusesAGraphWithoutNodes) {
  FixedRandom random(38);
  for (const ApprMechanism mechanism : kMechanisms) {
    const PrivateRowsOptions options = OptionsFor(mechanism, 1, 1);
    EXPECT_EQ(Summary(DrawPrivateRows(Graph(), options, 1, random, NeverCancel).status()),
              "INVALID_ARGUMENT INVALID_FIELD field=graph");
    EXPECT_EQ(Summary(PrivateRowsEvent(options, 0).status()), "INVALID_ARGUMENT INVALID_FIELD field=graph");
  }
}

// Exact vectors.

TEST(SolveRowsTest, AreTheSolversVectorsWithColumnsAscending) {
  FixedRandom random(39);
  const Graph graph = RandomGraph(300, 900, random);
  const ApprParameters parameters = {.rho = 1e-4};
  const std::vector<int32_t> seeds = {7, 299, 0, 7, 150};
  ApprSolver solver(parameters);
  for (const int threads : {1, 3}) {
    const ApprRows rows = SolveRows(graph.edges(), parameters, seeds, threads, NeverCancel).value();
    EXPECT_EQ(rows.node_count, 300);
    EXPECT_EQ(rows.seeds, seeds);
    ASSERT_EQ(rows.offsets.size(), 6U);
    for (size_t row = 0; row < seeds.size(); ++row) {
      const SparseVector exact = solver.Solve(graph.edges(), seeds[row], [] { return true; }).value();
      EXPECT_EQ(DenseRow(rows, row), Dense(exact, 300));
      const std::vector<int32_t> columns = ColumnsOf(rows, row);
      EXPECT_EQ(columns.size(), exact.ids.size());
      EXPECT_TRUE(std::is_sorted(columns.begin(), columns.end()));
    }
  }
}

TEST(SolveRowsTest, OfNoSeedsAreNoRows) {
  const ApprRows rows = SolveRows(GraphOf(3, {}).edges(), {}, {}, 2, NeverCancel).value();
  EXPECT_THAT(rows.seeds, IsEmpty());
  EXPECT_THAT(rows.offsets, ElementsAre(0));
}

TEST(SolveRowsTest, OfASeedWithoutNeighboursIsAnEmptyRow) {
  const ApprRows rows = SolveRows(GraphOf(3, {{0, 1}}).edges(), {}, {2, 0}, 1, NeverCancel).value();
  EXPECT_THAT(ColumnsOf(rows, 0), IsEmpty());
  EXPECT_THAT(ColumnsOf(rows, 1), ElementsAre(0, 1));
}

TEST(SolveRowsTest, RefusesBadSeedsAndParameters) {
  const Graph graph = GraphOf(3, {{0, 1}});
  for (const int32_t seed : {-1, 3}) {
    EXPECT_EQ(Summary(SolveRows(graph.edges(), {}, {0, seed, 1}, 1, NeverCancel).status()),
              "INVALID_ARGUMENT INVALID_FIELD field=seed");
  }
  EXPECT_EQ(Summary(SolveRows(graph.edges(), {.alpha = 0}, {0}, 1, NeverCancel).status()),
            "INVALID_ARGUMENT INVALID_FIELD field=alpha");
  EXPECT_EQ(Summary(SolveRows(graph.edges(), {.rho = kNan}, {0}, 1, NeverCancel).status()),
            "INVALID_ARGUMENT INVALID_FIELD field=rho");
}

TEST(RowEdgeCeiling, FollowsFromPublicQuantities) {
  EXPECT_EQ(RowEdgeCeiling({.alpha = 0.25, .rho = 1e-4}, 1'000'000), 80'000);
  EXPECT_EQ(RowEdgeCeiling({.alpha = 0.5, .rho = 1e-7}, 100), 320'000);
  EXPECT_EQ(RowEdgeCeiling({.alpha = 1e-3, .rho = 1e-12}, int64_t{1} << 31), 2'000'000'000'000'000);
}

TEST(PrivateRows, RowsAtTheirCeilingAreTheSameOnEveryThread) {
  const Graph graph = Star(300);
  const ApprParameters slow = {.alpha = 0.05, .rho = 1e-3, .gamma = 1e-12};
  ApprSolver solver(slow);
  ASSERT_TRUE(solver.Solve(graph.edges(), 1, [] { return true; }).ok());
  ASSERT_GT(solver.edges_visited(), RowEdgeCeiling(slow, 301));
  for (const ApprMechanism mechanism : kMechanisms) {
    PrivateRowsOptions options = OptionsFor(mechanism, 50, 3);
    options.solver = slow;
    const ApprRows alone = Drawn(graph, options, 1, /*threads=*/1);
    const ApprRows together = Drawn(graph, options, 1, /*threads=*/3);
    EXPECT_EQ(alone.columns, together.columns);
    EXPECT_EQ(alone.values, together.values);
  }
}

}  // namespace
}  // namespace dpar
