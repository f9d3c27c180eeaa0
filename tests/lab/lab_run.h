// For tests: runs of the real dpar-lab, on small graphs in a temporary directory.
#ifndef DPAR_TESTS_LAB_LAB_RUN_H_
#define DPAR_TESTS_LAB_LAB_RUN_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/graph/graph.h"
#include "core/graph/graph_file.h"
#include "tests/end_to_end/process.h"

namespace dpar::lab {

using Json = nlohmann::ordered_json;

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

using Edges = std::vector<std::pair<int32_t, int32_t>>;

// Every node has a feature and a label, so that none is a null slot.
inline Graph MakeGraph(int32_t node_count, const Edges& edges) {
  std::vector<std::vector<int32_t>> neighbours(static_cast<size_t>(node_count));
  for (const auto& [a, b] : edges) {
    neighbours[static_cast<size_t>(a)].push_back(b);
    neighbours[static_cast<size_t>(b)].push_back(a);
  }
  Graph graph;
  graph.sizes = {node_count, 1, 1};
  for (std::vector<int32_t>& row : neighbours) {
    std::sort(row.begin(), row.end());
    graph.neighbours.insert(graph.neighbours.end(), row.begin(), row.end());
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
    graph.features.columns.push_back(0);
    graph.features.values.push_back(1);
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
    graph.labels.push_back(0);
  }
  return graph;
}

inline Graph MakeStar(int32_t leaves) {
  Edges edges;
  for (int32_t leaf = 1; leaf <= leaves; ++leaf) {
    edges.emplace_back(0, leaf);
  }
  return MakeGraph(leaves + 1, edges);
}

inline std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;
}

inline size_t WidestLine(const std::string& text) {
  size_t widest = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    widest = std::max(widest, line.size());
  }
  return widest;
}

class LabTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const Graph& graph) const {
    std::string path = directory_.File(name);
    const absl::Status status = WriteGraphFile(path, graph);
    EXPECT_TRUE(status.ok()) << status;
    return path;
  }

  [[nodiscard]] std::string OneEdge() const { return Write("edge.npz", MakeGraph(2, {{0, 1}})); }

  static e2e::CommandResult Run(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {e2e::BinaryPath("dpar-lab")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return e2e::RunCommand(command, {});
  }

  // Runs a command that must succeed, with --json; stdout must be one document on one line.
  static Json MustJson(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const e2e::CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, kDone) << result.err;
    EXPECT_EQ(result.out.find('\n'), result.out.size() - 1);
    Json json = Json::parse(result.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_TRUE(json.is_object()) << result.out;
    return json;
  }

  // The command must fail with this exit code and message, and print nothing on stdout.
  static void ExpectRefused(const std::vector<std::string>& arguments, int exit_code, const std::string& message) {
    const e2e::CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << message;
    EXPECT_EQ(result.out, "") << message;
    EXPECT_THAT(result.err, ::testing::StartsWith("dpar-lab: "));
    EXPECT_THAT(result.err, ::testing::HasSubstr(message));
  }

  e2e::TemporaryDirectory directory_;
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_LAB_RUN_H_
