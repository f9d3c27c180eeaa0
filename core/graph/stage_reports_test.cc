// Long work on graphs tells how far it is, and stops when it is told to.
#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/canonical_content.h"
#include "core/graph/generate.h"
#include "core/graph/graph_file.h"
#include "core/graph/sealed_graph.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/graph/testing/questions.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::CancelAtEveryQuestion;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::TestPath;

// Half a million feature entries, and 160,000 edges that stand in one direction only, so that nothing can be skipped.
Graph OneWayGraph() {
  FixedRandom random(7);
  const GeneratorOptions options = {
      .nodes = 40'000, .classes = 3, .features = 200, .average_degree = 8, .features_per_node = 12};
  Graph graph = GenerateGraph(options, random).value();
  Graph one_way = graph;
  one_way.neighbours.clear();
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    for (const int32_t neighbour : graph.edges().neighbours_of(node)) {
      if (neighbour > node) {
        one_way.neighbours.push_back(neighbour);
      }
    }
    one_way.edge_offsets[static_cast<size_t>(node) + 1] = static_cast<int64_t>(one_way.neighbours.size());
  }
  return one_way;
}

// What was told, in order: a stage's name and the fraction.
class Told {
 public:
  StageReport Stage(const std::string& name) {
    return [this, name](double fraction) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_.emplace_back(name, fraction);
      return true;
    };
  }
  [[nodiscard]] std::vector<std::string> Stages() const {
    std::vector<std::string> stages;
    for (const auto& [stage, fraction] : told_) {
      if (stages.empty() || stages.back() != stage) {
        stages.push_back(stage);
      }
    }
    return stages;
  }
  [[nodiscard]] std::vector<double> Of(const std::string& name) const {
    std::vector<double> fractions;
    for (const auto& [stage, fraction] : told_) {
      if (stage == name) {
        fractions.push_back(fraction);
      }
    }
    return fractions;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::string, double>> told_;
};

TEST(StageReportsTest, ReadingIsParsingAndThenValidating) {
  const std::string path = TestPath("graph.npz");
  ASSERT_EQ(WriteGraphFile(path, OneWayGraph()), absl::OkStatus());
  Told told;
  const ReadReports reports = {told.Stage("parsing"), told.Stage("validating")};
  ASSERT_EQ(ReadGraphFile(path, GraphLimits(), std::nullopt, reports).status(), absl::OkStatus());
  EXPECT_THAT(told.Stages(), ::testing::ElementsAre("parsing", "validating"));
  const std::vector<double> parsing = told.Of("parsing");
  EXPECT_EQ(parsing.front(), 0);
  EXPECT_TRUE(std::is_sorted(parsing.begin(), parsing.end()));
  EXPECT_GT(parsing.back(), 0.99);  // but for the headers of the arrays
  EXPECT_LE(parsing.back(), 1);
  EXPECT_GE(parsing.size(), 16U) << "four megabytes, and a quarter of one between two reports";
  const std::vector<double> validating = told.Of("validating");
  EXPECT_EQ(validating.front(), 0);
  EXPECT_GE(validating.size(), 16U) << "1.3 million entries with all passes over them, and 65,536 between two reports";
  EXPECT_GT(*std::max_element(validating.begin(), validating.end()), 0.8);
  EXPECT_LE(*std::max_element(validating.begin(), validating.end()), 1);
}

TEST(StageReportsTest, ADenseMatrixThatIsReadTwiceIsNotTwiceDone) {
  const std::string path = TestPath("dense.npz");
  const NpyArray dense = {{3, 2}, std::vector<float>{1, 0, 0, 2, 3, 0}};
  ASSERT_EQ(testing::WriteArrays(path, {{"adj_data", testing::VectorArray(std::vector<float>{1, 1})},
                                        {"adj_indices", testing::VectorArray(std::vector<int32_t>{1, 0})},
                                        {"adj_indptr", testing::VectorArray(std::vector<int32_t>{0, 1, 2, 2})},
                                        {"adj_shape", testing::VectorArray(std::vector<int64_t>{3, 3})},
                                        {"attr_matrix", dense},
                                        {"labels", testing::VectorArray(std::vector<int32_t>{0, 1, 0})}}),
            absl::OkStatus());
  Told told;
  const ReadReports reports = {told.Stage("parsing"), told.Stage("validating")};
  ASSERT_EQ(ReadGraphFile(path, GraphLimits(), std::nullopt, reports).status(), absl::OkStatus());
  EXPECT_LE(told.Of("parsing").back(), 1);
}

TEST(StageReportsTest, ReadingStopsWheneverItIsToldTo) {
  const std::string path = TestPath("graph.npz");
  ASSERT_EQ(WriteGraphFile(path, OneWayGraph()), absl::OkStatus());
  const int64_t questions = CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
    const StageReport report = [&keep_going](double /*fraction*/) { return keep_going(); };
    return ReadGraphFile(path, GraphLimits(), std::nullopt, {report, report}).status();
  });
  EXPECT_GE(questions, 32);
}

TEST(StageReportsTest, SealingStopsWheneverItIsToldToAndLeavesNothing) {
  const std::string directory = TestPath("sealing");
  ASSERT_TRUE(std::filesystem::create_directories(directory));
  const std::string path = directory + "/graph.sealed";
  const Graph graph = OneWayGraph();
  const int64_t questions = CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
    std::filesystem::remove(path);
    double last = 0;
    const absl::Status status = WriteSealedGraph(path, graph, [&](double fraction) {
      EXPECT_GE(fraction, last);
      last = fraction;
      return keep_going();
    });
    EXPECT_EQ(std::filesystem::is_empty(directory), !status.ok());
    return status;
  });
  EXPECT_GE(questions, 16);
}

TEST(StageReportsTest, TheContentComesInPiecesAndStopsWheneverItIsToldTo) {
  const Graph graph = OneWayGraph();
  std::string content;
  std::vector<double> told;
  const auto append = [&](std::span<const std::byte> piece) {
    EXPECT_LE(piece.size(), size_t{1} << 20);
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  };
  ASSERT_EQ(VisitCanonicalContent(graph, append,
                                  [&told](double fraction) {
                                    told.push_back(fraction);
                                    return true;
                                  }),
            absl::OkStatus());
  EXPECT_EQ(content, CanonicalContent(graph));
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), 1);
  CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
    return VisitCanonicalContent(
        graph, [](std::span<const std::byte> /*piece*/) {}, [&](double /*fraction*/) { return keep_going(); });
  });
}

}  // namespace
}  // namespace dpar
