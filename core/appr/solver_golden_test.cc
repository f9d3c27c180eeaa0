// The solver against vectors of an independent one: shared/golden/ista where it is at hand. Without it these tests are
// skipped; the exact vectors and the textbook iteration of the solver's other tests cover the same ground.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/appr/solver.h"
#include "core/appr/testing/small_graphs.h"
#include "core/graph/graph_file.h"
#include "core/graph/npz.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::Dense;
using ::dpar::testing::Distance;

std::vector<double> DenseOf(const Graph& graph, int64_t seed, const ApprParameters& parameters) {
  const auto vector = ApprSolver(parameters).Solve(graph.edges(), seed, [] { return true; });
  EXPECT_TRUE(vector.ok()) << vector.status();
  return Dense(vector.value(), graph.sizes.node_count);
}

// Vectors of an independent solver, and the graph that they belong to.
struct Golden {
  Graph graph;  // the largest component
  std::vector<int64_t> seeds;
  std::vector<std::vector<double>> vectors;
  double alpha = 0;
  double rho = 0;
};

template <typename Entry>
std::vector<Entry> ReadVector(NpzFile& file, const char* name) {
  const absl::StatusOr<NpyArray> array = file.ReadArray(name);
  EXPECT_TRUE(array.ok()) << array.status();
  std::vector<Entry> entries;
  if (array.ok()) {
    std::visit(
        [&entries](const auto& data) {
          for (const auto& entry : data) {
            entries.push_back(static_cast<Entry>(entry));
          }
        },
        array->data);
  }
  return entries;
}

std::string Shared(const std::string& name) {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  return absl::StrCat(source != nullptr ? source : ".", "/../shared/", name);
}

constexpr const char* kGoldenNames[] = {"cora_ml_a0.15_r0.0001", "cora_ml_a0.15_r1e-05", "cora_ml_a0.25_r0.0001"};

class GoldenVectorsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string golden = Shared(absl::StrCat("golden/ista/", GetParam(), ".npz"));
    const std::string data = Shared("data/cora_ml.npz");
    for (const std::string& path : {golden, data}) {
      if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << path << " is not there; the exact vectors and the textbook iteration cover the same ground";
      }
    }
    absl::StatusOr<NpzFile> file = NpzFile::Open(golden, NpzLimits());
    ASSERT_TRUE(file.ok()) << file.status();
    absl::StatusOr<ImportedGraph> whole = ReadGraphFile(data, GraphLimits(), std::nullopt);
    ASSERT_TRUE(whole.ok()) << whole.status();
    component_ = ReadVector<int32_t>(*file, "lcc_nodes");
    golden_.graph = InducedSubgraph(whole->graph, component_);
    golden_.seeds = ReadVector<int64_t>(*file, "seeds_in_lcc");
    golden_.alpha = ReadVector<double>(*file, "alpha").at(0);
    golden_.rho = ReadVector<double>(*file, "rho").at(0);
    const auto offsets = ReadVector<size_t>(*file, "indptr");
    const auto columns = ReadVector<size_t>(*file, "indices");
    const auto values = ReadVector<double>(*file, "data");
    for (size_t row = 0; row < golden_.seeds.size(); ++row) {
      golden_.vectors.emplace_back(component_.size(), 0.0);
      for (size_t entry = offsets[row]; entry < offsets[row + 1]; ++entry) {
        golden_.vectors.back().at(columns[entry]) = values[entry];
      }
    }
  }

  Golden golden_;
  std::vector<int32_t> component_;
};

TEST_P(GoldenVectorsTest, ThePreciseOnesAreEqual) {
  ASSERT_EQ(golden_.seeds.size(), 8U);
  for (size_t i = 0; i < golden_.seeds.size(); ++i) {
    const std::vector<double> p =
        DenseOf(golden_.graph, golden_.seeds[i], {.alpha = golden_.alpha, .rho = golden_.rho, .gamma = 1e-8});
    EXPECT_LE(Distance(p, golden_.vectors[i]), 1e-6) << golden_.seeds[i];
  }
}

TEST_P(GoldenVectorsTest, TheRoughOnesAreWithinGamma) {
  constexpr double kGamma = 1e-4;
  constexpr double kGoldenError = 4e-7;  // its relative residual, which bounds its own distance
  for (size_t i = 0; i < golden_.seeds.size(); ++i) {
    const std::vector<double> p =
        DenseOf(golden_.graph, golden_.seeds[i], {.alpha = golden_.alpha, .rho = golden_.rho, .gamma = kGamma});
    EXPECT_LE(Distance(p, golden_.vectors[i]), kGamma + kGoldenError) << golden_.seeds[i];
  }
}

std::string GoldenTestName(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ista, GoldenVectorsTest, ::testing::ValuesIn(kGoldenNames), GoldenTestName);

}  // namespace
}  // namespace dpar
