#include "core/certificate/training_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/digest_keys.h"
#include "client/cli/testing/command_run.h"
#include "core/certificate/digest.h"
#include "core/certificate/unverified.h"
#include "core/graph/graph_file.h"
#include "core/infer/model.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunCommand;

Graph SmallGraph(int32_t label) {
  Graph graph;
  graph.sizes = {2, 1, 2};
  graph.edge_offsets = {0, 1, 2};
  graph.neighbours = {1, 0};
  graph.features.offsets = {0, 1, 2};
  graph.features.columns = {0, 0};
  graph.features.values = {1, 2};
  graph.labels = {0, label};
  return graph;
}

class TrainingGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(::testing::TempDir(), "/training_graph_test.", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    variables_ = {{"XDG_DATA_HOME", directory_ + "/share"}};
    ASSERT_EQ(WriteGraphFile(directory_ + "/trained.npz", SmallGraph(1)), absl::OkStatus());
    ASSERT_EQ(WriteGraphFile(directory_ + "/other.npz", SmallGraph(0)), absl::OkStatus());
    Model model;
    model.feature_count = 1;
    model.class_count = 2;
    model.weights = {1, 0, 0, 1};
    ASSERT_EQ(WriteModelFile(directory_ + "/model.npz", model), absl::OkStatus());
    digest_ = HmacSha256Hex(*HexDecode(kKey), CanonicalContent(SmallGraph(1)));
    WriteCertificate(absl::StrCat(R"({"predicate":{"dataset":{"digest":")", digest_, R"("}}})"));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void WriteCertificate(const std::string& statement) const {
    std::ofstream(directory_ + "/certificate.json") << R"({"payload":")" << Base64Encode(statement) << R"("})";
  }
  [[nodiscard]] Variables variables() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  [[nodiscard]] CommandRun Predict(const std::string& graph, const std::vector<std::string>& added = {}) const {
    std::vector<std::string> arguments = {
        "predict", "--model", directory_ + "/model.npz", "--graph", absl::StrCat(directory_, "/", graph), "--json"};
    arguments.insert(arguments.end(), added.begin(), added.end());
    return RunCommand(arguments, variables_);
  }

  static constexpr const char* kKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  std::string directory_;
  std::string digest_;
  std::map<std::string, std::string> variables_;
};

TEST_F(TrainingGraphTest, ThePredictedGraphIsKnownAgainByTheKeyThatTheUploadKept) {
  EXPECT_FALSE(Predict("trained.npz").json().contains("training_graph")) << "there is no key yet";
  const auto file = SaveDigestKey(variables(), digest_, kKey);
  ASSERT_TRUE(file.ok()) << file.status();
  struct stat status {};
  ASSERT_EQ(::stat(file->c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const CommandRun same = Predict("trained.npz");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.json()["training_graph"], true);
  EXPECT_THAT(same.err, HasSubstr("WARNING: this is the graph that the model was trained on"));
  const CommandRun other = Predict("other.npz");
  EXPECT_EQ(other.json()["training_graph"], false);
  EXPECT_THAT(other.err, Not(HasSubstr("WARNING")));
}

TEST_F(TrainingGraphTest, TheKeyMayComeFromAFile) {
  std::ofstream(directory_ + "/key") << kKey << "\n";
  EXPECT_EQ(Predict("trained.npz", {"--digest-key", directory_ + "/key"}).json()["training_graph"], true);
  EXPECT_EQ(Predict("trained.npz", {"--digest-key", directory_ + "/none"}).exit_code, 2);
  std::ofstream(directory_ + "/bad") << "no hex";
  EXPECT_EQ(Predict("trained.npz", {"--digest-key", directory_ + "/bad"}).exit_code, 1);
}

TEST_F(TrainingGraphTest, ACertificateThatIsNoneIsAnError) {
  WriteCertificate("{}");
  const CommandRun run = Predict("trained.npz");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("not a certificate"));
  EXPECT_FALSE(DatasetDigest("no json").ok());
  EXPECT_FALSE(DatasetDigest(R"({"payload":"***"})").ok());
  EXPECT_EQ(Predict("trained.npz", {"--certificate", directory_ + "/none"}).exit_code, 2);
}

TEST_F(TrainingGraphTest, ADigestThatIsNoHexNeverBecomesAFilesName) {
  EXPECT_FALSE(SaveDigestKey(variables(), "../../up", kKey).ok());
  EXPECT_FALSE(FindDigestKey(variables(), "../../up").has_value());
  EXPECT_FALSE(FindDigestKey(variables(), digest_).has_value());
}

}  // namespace
}  // namespace dpar
