#include "core/appr/solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/appr/testing/reference.h"
#include "core/appr/testing/small_graphs.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::Dense;
using ::dpar::testing::Distance;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::GraphOf;
using ::dpar::testing::RandomGraph;
using ::dpar::testing::Star;
using ::dpar::testing::Summary;
using ::dpar::testing::TextbookIsta;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool KeepGoing() { return true; }

SparseVector Solved(const Graph& graph, int64_t seed, const ApprParameters& parameters) {
  absl::StatusOr<SparseVector> vector = ApprSolver(parameters).Solve(graph.edges(), seed, KeepGoing);
  EXPECT_TRUE(vector.ok()) << vector.status();
  return vector.ok() ? *std::move(vector) : SparseVector();
}

std::vector<double> DenseOf(const Graph& graph, int64_t seed, const ApprParameters& parameters) {
  return Dense(Solved(graph, seed, parameters), graph.sizes.node_count);
}

double Sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double Degree(const Graph& graph, size_t node, bool self_loops) {
  return static_cast<double>(graph.edge_offsets[node + 1] - graph.edge_offsets[node]) + (self_loops ? 1 : 0);
}

// r = alpha e_s + (1-alpha)/2 A D^-1 p - (1+alpha)/2 p, from the definition.
std::vector<double> Residual(const Graph& graph, int64_t seed, const ApprParameters& parameters,
                             const std::vector<double>& p) {
  std::vector<double> residual(p.size(), 0);
  residual[static_cast<size_t>(seed)] += parameters.alpha;
  for (size_t node = 0; node < p.size(); ++node) {
    residual[node] -= (1 + parameters.alpha) / 2 * p[node];
    if (p[node] == 0) {
      continue;
    }
    const double share = (1 - parameters.alpha) / 2 * p[node] / Degree(graph, node, parameters.self_loops);
    for (const int32_t neighbour : graph.edges().neighbours_of(static_cast<int64_t>(node))) {
      residual[static_cast<size_t>(neighbour)] += share;
    }
    if (parameters.self_loops) {
      residual[node] += share;
    }
  }
  return residual;
}

// Exact vectors. Write h = (1-alpha)/2 and g = (1+alpha)/2, so that g + h = 1 and g - h = alpha. Summing the conditions
// r_i = rho alpha d_i over a component that is the support gives sum p = 1 - rho * volume; the rest follows from
// differences between two nodes' conditions.
struct Exact {
  double alpha;
  double rho;
  double h = (1 - alpha) / 2;
  double g = (1 + alpha) / 2;

  [[nodiscard]] ApprParameters parameters(bool self_loops) const {
    return {.alpha = alpha, .rho = rho, .gamma = 1e-10, .self_loops = self_loops};
  }
};

constexpr double kExactTolerance = 1e-9;  // l1, ten times gamma
const Exact kExacts[] = {{0.25, 0.01}, {0.15, 1e-4}, {0.5, 0.02}, {0.9, 1e-3}, {0.05, 1e-7}};

TEST(ApprSolverTest, SolvesOneEdge) {
  // r_0 - r_1 = alpha - (p_0 - p_1) = 0 and p_0 + p_1 = 1 - 2 rho.
  const Graph graph = GraphOf(2, {{0, 1}});
  for (const Exact& exact : kExacts) {
    const std::vector<double> expected = {exact.g - exact.rho, exact.h - exact.rho};
    EXPECT_LT(Distance(DenseOf(graph, 0, exact.parameters(false)), expected), kExactTolerance) << exact.alpha;
    EXPECT_LT(Distance(DenseOf(graph, 1, exact.parameters(false)), {expected[1], expected[0]}), kExactTolerance);
  }
}

TEST(ApprSolverTest, LeavesTheOtherEndOfAnEdgeAtZeroWhenTheThresholdIsAboveIt) {
  // p_1 = h - rho would be negative, so only r_0 = alpha - g p_0 = rho alpha holds; r_1 = h p_0 is below rho alpha.
  const Exact exact = {.alpha = 0.5, .rho = 0.3};
  const std::vector<double> p = DenseOf(GraphOf(2, {{0, 1}}), 0, exact.parameters(false));
  EXPECT_DOUBLE_EQ(p[0], exact.alpha * (1 - exact.rho) / exact.g);
  EXPECT_EQ(p[1], 0);
}

TEST(ApprSolverTest, SolvesOneEdgeWithSelfLoops) {
  // Degrees are 2 and A D^-1 is 1/2 everywhere: r_0 - r_1 = alpha - g (p_0 - p_1), p_0 + p_1 = 1 - 4 rho.
  const Graph graph = GraphOf(2, {{0, 1}});
  for (const Exact& exact : kExacts) {
    const double sum = 1 - 4 * exact.rho;
    const double difference = exact.alpha / exact.g;
    ASSERT_GT(sum, difference);
    EXPECT_LT(Distance(DenseOf(graph, 0, exact.parameters(true)), {(sum + difference) / 2, (sum - difference) / 2}),
              kExactTolerance)
        << exact.alpha;
  }
}

TEST(ApprSolverTest, SolvesATriangle) {
  // r_0 - r_1 = alpha - (g + h/2) (p_0 - p_1), p_1 = p_2, p_0 + 2 p_1 = 1 - 6 rho.
  const Graph graph = GraphOf(3, {{0, 1}, {1, 2}, {0, 2}});
  for (const Exact& exact : kExacts) {
    const double difference = exact.alpha / (exact.g + exact.h / 2);
    const double other = (1 - 6 * exact.rho - difference) / 3;
    ASSERT_GT(other, 0);
    EXPECT_LT(Distance(DenseOf(graph, 0, exact.parameters(false)), {other + difference, other, other}), kExactTolerance)
        << exact.alpha;
  }
}

TEST(ApprSolverTest, SolvesATriangleWithSelfLoops) {
  // Degrees are 3 and A D^-1 is 1/3 everywhere: r_0 - r_1 = alpha - g (p_0 - p_1), p_0 + 2 p_1 = 1 - 9 rho.
  const Graph graph = GraphOf(3, {{0, 1}, {1, 2}, {0, 2}});
  for (const Exact& exact : kExacts) {
    const double difference = exact.alpha / exact.g;
    const double other = (1 - 9 * exact.rho - difference) / 3;
    ASSERT_GT(other, 0);
    EXPECT_LT(Distance(DenseOf(graph, 2, exact.parameters(true)), {other, other, other + difference}), kExactTolerance)
        << exact.alpha;
  }
}

TEST(ApprSolverTest, SolvesAStarFromItsCentre) {
  // A leaf: h p_0 / n - g p_1 = rho alpha. With p_0 + n p_1 = 1 - 2 n rho: p_0 = g - n rho, p_1 = h / n - rho.
  constexpr int kLeaves = 5;
  for (const Exact& exact : {Exact{0.25, 0.01}, Exact{0.15, 1e-4}, Exact{0.05, 1e-7}}) {
    std::vector<double> expected(kLeaves + 1, exact.h / kLeaves - exact.rho);
    expected[0] = exact.g - kLeaves * exact.rho;
    EXPECT_LT(Distance(DenseOf(Star(kLeaves), 0, exact.parameters(false)), expected), kExactTolerance) << exact.alpha;
  }
}

TEST(ApprSolverTest, SolvesAStarFromALeaf) {
  // The leaves 1 (the seed) and 2: r_1 - r_2 = alpha - g (p_1 - p_2). The centre: h (1 - 2 n rho - p_0) - g p_0 =
  // n rho alpha, so p_0 = h - n rho, the leaves together have g - n rho, and g^2 - alpha = h^2.
  constexpr int kLeaves = 5;
  for (const Exact& exact : {Exact{0.25, 0.01}, Exact{0.15, 1e-4}, Exact{0.05, 1e-7}}) {
    std::vector<double> expected(kLeaves + 1, exact.h * exact.h / exact.g / kLeaves - exact.rho);
    expected[0] = exact.h - kLeaves * exact.rho;
    expected[1] += exact.alpha / exact.g;
    EXPECT_LT(Distance(DenseOf(Star(kLeaves), 1, exact.parameters(false)), expected), kExactTolerance) << exact.alpha;
  }
}

TEST(ApprSolverTest, SolvesAStarWithSelfLoopsFromItsCentre) {
  // Degrees are n + 1 and 2. A leaf: h p_0 / (n+1) - e p_1 = 2 rho alpha with e = g - h/2; p_0 + n p_1 = 1 - (3n+1)
  // rho.
  constexpr int kLeaves = 5;
  for (const Exact& exact : {Exact{0.25, 0.01}, Exact{0.15, 1e-4}, Exact{0.05, 1e-7}}) {
    const double e = exact.g - exact.h / 2;
    const double centre = (1 - (3 * kLeaves + 1) * exact.rho + kLeaves * 2 * exact.rho * exact.alpha / e) /
                          (1 + kLeaves * exact.h / ((kLeaves + 1) * e));
    std::vector<double> expected(kLeaves + 1, (exact.h * centre / (kLeaves + 1) - 2 * exact.rho * exact.alpha) / e);
    expected[0] = centre;
    EXPECT_LT(Distance(DenseOf(Star(kLeaves), 0, exact.parameters(true)), expected), kExactTolerance) << exact.alpha;
  }
}

TEST(ApprSolverTest, ASeedWithoutNeighboursHasTheZeroVector) {
  EXPECT_THAT(Solved(GraphOf(3, {{0, 1}}), 2, {}).ids, IsEmpty());
  EXPECT_THAT(Solved(GraphOf(1, {}), 0, {}).ids, IsEmpty());
}

TEST(ApprSolverTest, ASeedWithOnlyItsSelfLoopKeepsEverythingButRho) {
  // Degree 1: alpha - alpha p = rho alpha.
  const SparseVector vector = Solved(GraphOf(3, {{0, 1}}), 2, {.rho = 0.125, .self_loops = true});
  EXPECT_THAT(vector.ids, ElementsAre(2));
  EXPECT_THAT(vector.values, ElementsAre(0.875));
}

TEST(ApprSolverTest, RhoOneGivesTheZeroVector) {
  for (const bool self_loops : {false, true}) {
    EXPECT_THAT(Solved(GraphOf(2, {{0, 1}}), 0, {.rho = 1, .self_loops = self_loops}).ids, IsEmpty());
    EXPECT_THAT(Solved(Star(4), 0, {.rho = 1, .self_loops = self_loops}).ids, IsEmpty());
  }
  EXPECT_THAT(Solved(GraphOf(1, {}), 0, {.rho = 1, .self_loops = true}).ids, IsEmpty());
}

TEST(ApprSolverTest, StaysInTheSeedsComponent) {
  const std::vector<double> p = DenseOf(GraphOf(5, {{0, 1}, {2, 3}, {3, 4}}), 3, {.rho = 1e-6});
  EXPECT_EQ(p[0], 0);
  EXPECT_EQ(p[1], 0);
  EXPECT_GT(p[2], 0);
  EXPECT_GT(p[3], p[4]);
  EXPECT_DOUBLE_EQ(p[2], p[4]);
}

TEST(ApprSolverTest, ARowEndsAtItsCeilingWithWhatItHasReached) {
  // A hub of a thousand leaves, and a leaf as the seed: the hub's edges are visited again and again.
  const Graph graph = Star(1000);
  ApprParameters parameters = {.rho = 1e-6, .gamma = 1e-8};
  ApprSolver free_solver(parameters);
  const absl::StatusOr<SparseVector> whole = free_solver.Solve(graph.edges(), 1, KeepGoing);
  ASSERT_TRUE(whole.ok());
  ASSERT_GT(free_solver.edges_visited(), 20'000);
  const std::vector<double> limit = Dense(*whole, 1001);
  for (const int64_t ceiling : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{1001}, int64_t{10'000}}) {
    parameters.max_edges = ceiling;
    ApprSolver solver(parameters);
    const absl::StatusOr<SparseVector> first = solver.Solve(graph.edges(), 1, KeepGoing);
    ASSERT_TRUE(first.ok());
    EXPECT_LE(solver.edges_visited(), ceiling);
    EXPECT_GE(solver.edges_visited(), std::min<int64_t>(ceiling, 1 + (ceiling - 1) / 2001 * 2000));
    const std::vector<double> reached = Dense(*first, 1001);
    for (size_t i = 0; i < limit.size(); ++i) {
      EXPECT_LE(reached[i], limit[i]) << "entries grow towards the optimum";
    }
    // Other rows before it do not change it.
    ASSERT_TRUE(solver.Solve(graph.edges(), 0, KeepGoing).ok());
    EXPECT_EQ(Dense(*solver.Solve(graph.edges(), 1, KeepGoing), 1001), reached);
  }
  parameters.max_edges = free_solver.edges_visited();
  EXPECT_EQ(DenseOf(graph, 1, parameters), limit) << "a ceiling that is not passed changes nothing";
}

// Everything that is promised of one vector.
void ExpectOptimal(const Graph& graph, int64_t seed, const ApprParameters& parameters, const SparseVector& vector) {
  SCOPED_TRACE(absl::StrCat("seed ", seed, " alpha ", parameters.alpha, " rho ", parameters.rho, " gamma ",
                            parameters.gamma, " self loops ", parameters.self_loops));
  const std::vector<double> p = Dense(vector, graph.sizes.node_count);
  EXPECT_EQ(static_cast<ptrdiff_t>(vector.ids.size()),
            std::count_if(p.begin(), p.end(), [](double x) { return x > 0; }))
      << "an entry is not above 0 or occurs twice";
  const std::vector<double> residual = Residual(graph, seed, parameters, p);
  // The residual of the definition is itself rounded, relative to alpha.
  const double rounding = 1e-13 * parameters.alpha;
  double volume = 0;
  for (size_t node = 0; node < p.size(); ++node) {
    const double degree = Degree(graph, node, parameters.self_loops);
    const double threshold = parameters.rho * parameters.alpha * degree;
    EXPECT_GE(p[node], 0);
    if (p[node] > 0) {
      volume += degree;
      EXPECT_GE(residual[node], threshold - rounding);
    }
    if (degree > 0) {
      EXPECT_LE(residual[node], (1 + parameters.gamma) * threshold + rounding);
    }
  }
  EXPECT_LE(Sum(p), 1);
  EXPECT_LE(parameters.rho * volume, 1);
}

std::vector<ApprParameters> ManyParameters() {
  std::vector<ApprParameters> all;
  for (const double alpha : {0.05, 0.25, 0.8}) {
    for (const double rho : {0.1, 1e-2, 1e-4, 1e-7}) {
      for (const double gamma : {1.0, 1e-2, 1e-8}) {
        for (const bool self_loops : {false, true}) {
          all.push_back({.alpha = alpha, .rho = rho, .gamma = gamma, .self_loops = self_loops});
        }
      }
    }
  }
  return all;
}

TEST(ApprSolverTest, MeetsTheOptimalityConditionsOnRandomGraphs) {
  FixedRandom random(1);
  for (const int64_t edges : {20, 100, 600}) {
    const Graph graph = RandomGraph(60, edges, random);
    for (const ApprParameters& parameters : ManyParameters()) {
      for (int64_t seed = 0; seed < 5; ++seed) {
        ExpectOptimal(graph, seed, parameters, Solved(graph, seed, parameters));
      }
    }
  }
}

TEST(ApprSolverTest, AgreesWithTheTextbookIteration) {
  FixedRandom random(2);
  const Graph graph = RandomGraph(80, 200, random);
  for (const ApprParameters& parameters : ManyParameters()) {
    TextbookIsta textbook(graph.edges(), parameters);
    for (int64_t seed = 0; seed < 8; ++seed) {
      // Both are below the optimum by at most gamma.
      const std::vector<double> expected = Dense(textbook.Solve(seed), graph.sizes.node_count);
      EXPECT_LE(Distance(DenseOf(graph, seed, parameters), expected), parameters.gamma + 1e-12);
    }
  }
}

TEST(ApprSolverTest, APreciseVectorIsAtMostGammaAboveARoughOne) {
  FixedRandom random(3);
  const Graph graph = RandomGraph(80, 300, random);
  for (const double gamma : {0.5, 1e-1, 1e-3, 1e-5}) {
    for (int64_t seed = 0; seed < 20; ++seed) {
      const std::vector<double> rough = DenseOf(graph, seed, {.rho = 1e-3, .gamma = gamma});
      const std::vector<double> precise = DenseOf(graph, seed, {.rho = 1e-3, .gamma = 1e-11});
      EXPECT_LE(Distance(rough, precise), gamma);
      for (size_t node = 0; node < rough.size(); ++node) {
        EXPECT_LE(rough[node], precise[node] + 1e-10);
      }
    }
  }
}

TEST(ApprSolverTest, EveryEntryFallsAsRhoGrows) {
  FixedRandom random(4);
  const Graph graph = RandomGraph(100, 250, random);
  for (const bool self_loops : {false, true}) {
    for (int64_t seed = 0; seed < 20; ++seed) {
      std::vector<double> last(100, 1);
      for (double rho = 1e-6; rho < 1; rho *= 3) {
        const std::vector<double> p = DenseOf(graph, seed, {.rho = rho, .gamma = 1e-11, .self_loops = self_loops});
        for (size_t node = 0; node < p.size(); ++node) {
          EXPECT_LE(p[node], last[node] + 1e-10);
          EXPECT_FALSE(last[node] == 0 && p[node] > 0) << "the support grew";
        }
        last = p;
      }
    }
  }
}

void ExpectSame(const SparseVector& a, const SparseVector& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.values, b.values);  // bit for bit
}

TEST(ApprSolverTest, OneSolverForManySeedsGivesWhatFreshOnesGive) {
  FixedRandom random(5);
  const Graph graph = RandomGraph(500, 1500, random);
  const Graph hub = Star(100'000);
  const ApprParameters parameters = {.rho = 1e-5};
  ApprSolver solver(parameters);
  for (int64_t seed = 0; seed < 100; ++seed) {
    ExpectSame(solver.Solve(graph.edges(), seed, KeepGoing).value(), Solved(graph, seed, parameters));
    if (seed % 40 == 0) {
      EXPECT_TRUE(solver.Solve(hub.edges(), seed, KeepGoing).ok()) << "its table is larger from here on";
    }
    if (seed % 10 == 0) {
      EXPECT_FALSE(solver.Solve(graph.edges(), -1, KeepGoing).ok());
    }
  }
}

TEST(ApprSolverTest, SolvesAHubOfAHundredThousandNeighbours) {
  // The closed forms of the star, at a degree that makes the table of nodes grow many times over.
  constexpr int kLeaves = 100'000;
  const Exact exact = {.alpha = 0.25, .rho = 1e-7};
  const Graph star = Star(kLeaves);
  const ApprParameters parameters = {.alpha = exact.alpha, .rho = exact.rho, .gamma = 1e-9};
  std::vector<double> from_centre(kLeaves + 1, exact.h / kLeaves - exact.rho);
  from_centre[0] = exact.g - kLeaves * exact.rho;
  EXPECT_LT(Distance(DenseOf(star, 0, parameters), from_centre), 1e-8);
  std::vector<double> from_leaf(kLeaves + 1, exact.h * exact.h / exact.g / kLeaves - exact.rho);
  from_leaf[0] = exact.h - kLeaves * exact.rho;
  from_leaf[kLeaves] += exact.alpha / exact.g;
  EXPECT_LT(Distance(DenseOf(star, kLeaves, parameters), from_leaf), 1e-8);
}

TEST(ApprSolverTest, StopsAtAHubThatTheThresholdKeepsOut) {
  // The hub's degree of 100,000 puts its threshold above anything that one leaf can send.
  const SparseVector vector = Solved(Star(100'000), 7, {.alpha = 0.25, .rho = 1e-3});
  EXPECT_THAT(vector.ids, ElementsAre(7));
  EXPECT_DOUBLE_EQ(vector.values[0], 0.25 * (1 - 1e-3) / 0.625);
}

TEST(ApprSolverTest, IsCancelledWithinARowAndWorksAfterwards) {
  FixedRandom random(6);
  const Graph graph = RandomGraph(3000, 60'000, random);
  const ApprParameters parameters = {.alpha = 0.05, .rho = 1e-10, .gamma = 1e-8};
  ApprSolver solver(parameters);
  int questions = 0;
  const auto refuse = [&questions] {
    ++questions;
    return false;
  };
  const auto cancelled = solver.Solve(graph.edges(), 0, refuse);
  EXPECT_EQ(cancelled.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(questions, 1);
  const auto third = [&questions] { return ++questions < 4; };
  EXPECT_EQ(solver.Solve(graph.edges(), 1, third).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(questions, 4);
  ExpectSame(solver.Solve(graph.edges(), 2, KeepGoing).value(), Solved(graph, 2, parameters));
}

// Residuals near a hub's threshold are large, so what a leaf gives back would be rounded up again and again, and mass
// made from nothing, were they kept whole.
TEST(ApprSolverTest, EndsAtTheFinestTolerance) {
  int64_t questions = 0;
  const auto count = [&questions] { return ++questions < 100; };
  ApprSolver solver({.alpha = 0.05, .rho = 1e-9, .gamma = 1e-12});
  EXPECT_TRUE(solver.Solve(Star(10'000).edges(), 0, count).ok());
}

TEST(ApprSolverTest, RefusesSeedsThatAreNotNodes) {
  const Graph graph = GraphOf(3, {{0, 1}});
  ApprSolver solver{ApprParameters()};
  for (const int64_t seed : {int64_t{-1}, int64_t{3}, int64_t{1} << 40U, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(Summary(solver.Solve(graph.edges(), seed, KeepGoing).status()),
              "INVALID_ARGUMENT INVALID_FIELD field=seed")
        << seed;
  }
  EXPECT_EQ(Summary(solver.Solve(GraphOf(0, {}).edges(), 0, KeepGoing).status()),
            "INVALID_ARGUMENT INVALID_FIELD field=seed");
  EXPECT_TRUE(solver.Solve(graph.edges(), 2, KeepGoing).ok());
}

TEST(ValidateParametersTest, AcceptsTheDefaultsAndTheEndsOfTheRanges) {
  EXPECT_TRUE(ValidateParameters({}).ok());
  EXPECT_TRUE(ValidateParameters({.alpha = 0.999, .rho = 1, .gamma = 1}).ok());
}

TEST(ValidateParametersTest, NamesWhatIsOutOfRange) {
  for (const double alpha : {0.0, 1.0, -0.25, 2.0, 0.99e-3, 1e-17, kNan}) {
    EXPECT_EQ(Summary(ValidateParameters({.alpha = alpha})), "INVALID_ARGUMENT INVALID_FIELD field=alpha") << alpha;
  }
  for (const double rho : {0.0, -1.0, 2.0, 1e-30, kNan}) {
    EXPECT_EQ(Summary(ValidateParameters({.rho = rho})), "INVALID_ARGUMENT INVALID_FIELD field=rho") << rho;
  }
  for (const double gamma : {0.0, -1.0, 2.0, 1e-30, kNan}) {
    EXPECT_EQ(Summary(ValidateParameters({.gamma = gamma})), "INVALID_ARGUMENT INVALID_FIELD field=gamma") << gamma;
  }
}

}  // namespace
}  // namespace dpar
