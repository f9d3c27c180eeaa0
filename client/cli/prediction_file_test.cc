#include "client/cli/prediction_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/testing/command_run.h"
#include "core/error.h"
#include "core/graph/graph_file.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using testing::RunCommand;

constexpr std::array<Prediction, 3> kPredictions = {{{2, 0.75F}, {0, 1.0F}, {1, 0.5F}}};

class PredictionFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(::testing::TempDir(), "/prediction_file_test.", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] std::string Content(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  void Write(const std::string& name, const GraphNames& names = {}) const {
    const auto format = ParsePredictionFormat("", Path(name));
    ASSERT_TRUE(format.ok()) << format.status();
    auto writer = OpenPredictionWriter(Path(name), *format, names);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const std::span<const Prediction> all(kPredictions);
    ASSERT_EQ((*writer)->Add(all.first(1)), absl::OkStatus());
    ASSERT_EQ((*writer)->Add(all.subspan(1)), absl::OkStatus());
    EXPECT_FALSE(std::filesystem::exists(Path(name))) << "it must not be there before it is whole";
    ASSERT_EQ((*writer)->Finish(), absl::OkStatus());
  }

  // The message with which a text of predictions is refused.
  [[nodiscard]] std::string Refusal(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
    const auto predictions = ReadPredictions(Path(name), 3, {});
    EXPECT_EQ(predictions.status().code(), absl::StatusCode::kInvalidArgument) << text;
    return std::string(predictions.status().message());
  }

  std::string directory_;
};

TEST_F(PredictionFileTest, EveryFormatGivesBackWhatWasWritten) {
  for (const std::string name : {"p.csv", "p.npz", "p.jsonl"}) {
    Write(name);
    const auto predictions = ReadPredictions(Path(name), 3, {});
    ASSERT_TRUE(predictions.ok()) << name << predictions.status();
    ASSERT_EQ(predictions->size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ((*predictions)[i].label, kPredictions[i].label) << name;
      EXPECT_EQ((*predictions)[i].probability, kPredictions[i].probability) << name;
    }
  }
  EXPECT_EQ(Content("p.csv"), "node,class,probability\n0,2,0.750000\n1,0,1.000000\n2,1,0.500000\n");
  EXPECT_THAT(Content("p.jsonl"), HasSubstr("{\"node\":0,\"class\":2,\"probability\":0.750000}\n"));
}

TEST_F(PredictionFileTest, NamesComeBackInEveryFormat) {
  GraphNames names;
  for (const char* id : {"AC-1", "a,b", "say \"hi\""}) {
    names.ids.Add(id);
  }
  names.classes = {"retail", "business", "risk; high"};
  for (const std::string name : {"p.csv", "p.npz", "p.jsonl"}) {
    Write(name, names);
    const auto predictions = ReadPredictions(Path(name), 3, names);
    ASSERT_TRUE(predictions.ok()) << name << predictions.status();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ((*predictions)[i].label, kPredictions[i].label) << name;
    }
  }
  EXPECT_EQ(Content("p.csv"),
            "id,class,probability\nAC-1,\"risk; high\",0.750000\n\"a,b\",retail,1.000000\n\"say "
            "\"\"hi\"\"\",business,0.500000\n");
  EXPECT_THAT(Content("p.jsonl"), HasSubstr("{\"id\":\"AC-1\",\"class\":\"risk; high\",\"probability\":0.750000}\n"));
  const auto read = ReadGraphNames(Path("p.npz"), 3, 3);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, names);
  EXPECT_FALSE(ReadPredictions(Path("p.csv"), 3, {}).ok()) << "ids need the graph's ids";
}

TEST_F(PredictionFileTest, AFormatComesFromTheFlagOrTheEnding) {
  EXPECT_EQ(*ParsePredictionFormat("jsonl", "x.csv"), PredictionFormat::kJsonLines);
  EXPECT_EQ(*ParsePredictionFormat("", "x.csv"), PredictionFormat::kCsv);
  for (const auto& [format, path] : std::vector<std::pair<std::string, std::string>>{{"", "x.txt"}, {"xml", "x.csv"}}) {
    const auto parsed = ParsePredictionFormat(format, path);
    EXPECT_EQ(GetErrorInfo(parsed.status())->reason(), "INVALID_FIELD");
  }
}

TEST_F(PredictionFileTest, WhatIsNoPredictionIsRefusedAtItsLine) {
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n0,1\n"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n0,1,0.5\n0,1,0.5\n"), HasSubstr("second time"));
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n3,1,0.5\n"), HasSubstr("does not have"));
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n-1,1,0.5\n"), HasSubstr("does not have"));
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n0,-1,0.5\n"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n0,1,1.5\n"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n0,1,nan\n"), HasSubstr("line 2"));
  EXPECT_THAT(Refusal("a.csv", "node,class,probability\n"), HasSubstr("0 nodes"));
  EXPECT_THAT(Refusal("a.jsonl", "{\"node\":0}\n"), HasSubstr("line 1"));
  EXPECT_THAT(Refusal("a.jsonl", "[]\n"), HasSubstr("line 1"));
  EXPECT_THAT(Refusal("a.jsonl", "{\"node\":0,\"class\":5000000000,\"probability\":1}\n"), HasSubstr("line 1"));
  std::ofstream(Path("a.npz")) << "no zip";
  EXPECT_EQ(ReadPredictions(Path("a.npz"), 3, {}).status().code(), absl::StatusCode::kInvalidArgument);
  Write("p.npz");
  EXPECT_EQ(ReadPredictions(Path("p.npz"), 4, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PredictionFileTest, EvaluateCountsPerClass) {
  Write("p.csv");
  Graph graph;
  graph.sizes = {3, 1, 3};
  graph.edge_offsets = {0, 0, 0, 0};
  graph.features.offsets = {0, 1, 2, 3};
  graph.features.columns = {0, 0, 0};
  graph.features.values = {1, 1, 1};
  graph.labels = {2, 1, 1};
  ASSERT_EQ(WriteGraphFile(Path("g.npz"), graph), absl::OkStatus());
  const CommandRun run = RunCommand({"evaluate", "--predictions", Path("p.csv"), "--graph", Path("g.npz"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = run.json();
  EXPECT_EQ(json["labelled"], 3);
  EXPECT_NEAR(json["accuracy"].get<double>(), 2.0 / 3, 1e-12);
  EXPECT_EQ(json["classes"][0],
            (Json{{"class", 0}, {"nodes", 0}, {"predicted", 1}, {"precision", 0.0}, {"recall", 0.0}, {"f1", 0.0}}));
  EXPECT_EQ(json["classes"][1]["recall"], 0.5);
  EXPECT_EQ(json["classes"][1]["precision"], 1.0);
  EXPECT_EQ(json["classes"][2]["f1"], 1.0);
  // Classes 1 and 2 occur: (2/3 + 1) / 2.
  EXPECT_NEAR(json["macro_f1"].get<double>(), (2.0 / 3 + 1) / 2, 1e-12);
  const CommandRun text = RunCommand({"evaluate", "--predictions", Path("p.csv"), "--graph", Path("g.npz")});
  EXPECT_THAT(text.out, HasSubstr("accuracy  0.6667 on 3 labelled nodes\n"));
  EXPECT_THAT(text.out, HasSubstr("CLASS  NODES  PREDICTED  PRECISION  RECALL  F1"));
}

}  // namespace
}  // namespace dpar
