// predict and verify, on files that the test makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/testing/command_run.h"
#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/certificate/signing_key.h"
#include "core/certificate/testing/example_statement.h"
#include "core/graph/graph_file.h"
#include "core/infer/model.h"
#include "core/plan/plan.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunCommand;

class ModelCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/model_commands_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    WriteModel();
    WriteGraph("g.npz", {0, 1, -1});
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Feature k speaks for class k.
  void WriteModel() const {
    Model model;
    model.feature_count = 2;
    model.class_count = 2;
    model.weights = {5, -5, -5, 5, 0, 0};
    ASSERT_TRUE(WriteModelFile(Path("model.npz"), model).ok());
  }

  // Nodes 0 and 1 have features 0 and 1; node 2 has none and hangs on node 1.
  void WriteGraph(const std::string& name, const std::vector<int32_t>& labels) const {
    Graph graph;
    graph.sizes = {3, 2, 2};
    graph.edge_offsets = {0, 0, 1, 2};
    graph.neighbours = {2, 1};
    graph.features.offsets = {0, 1, 2, 2};
    graph.features.columns = {0, 1};
    graph.features.values = {1, 1};
    graph.labels = labels;
    ASSERT_TRUE(WriteGraphFile(Path(name), graph).ok());
  }

  // A certificate for model.npz at epsilon 1, signed by a new key, with its public half beside it.
  void WriteCertificate(bool is_public) const {
    const auto key = SigningKey::Generate();
    ASSERT_TRUE(key.ok());
    const auto terms = MakeBudgetTerms(8, 1e-5);
    ASSERT_TRUE(terms.ok()) << terms.status();
    Statement statement;
    statement.subjects["model.npz"] = *Sha256File(Path("model.npz"));
    statement.job = "tenants/acme/jobs/j1";
    statement.dataset = "tenants/acme/datasets/demo";
    statement.dataset_digest = std::string(64, 'a');
    statement.sizes = {3000, 2, 2};
    statement.bounds = {192'000, 6000};
    statement.is_public = is_public;
    v1::TrainingSpec spec;
    spec.set_epsilon(1);
    spec.set_delta(terms->cap_delta);
    const auto plan = MakePlan(spec, statement.sizes);
    ASSERT_TRUE(plan.ok()) << plan.status();
    statement.plan = *plan;
    if (!is_public) {
      const auto epsilon = EventEpsilon(statement.plan.event(), terms->cap_delta);
      ASSERT_TRUE(epsilon.ok()) << epsilon.status();
      statement.accountant_epsilon = *epsilon;
      statement.population = "tenants/acme/populations/demo";
      statement.ledger_sequence = 3;
      statement.cap_epsilon = terms->cap_epsilon;
      statement.cap_delta = terms->cap_delta;
      statement.order = terms->order;
      statement.cap_units = terms->cap_units;
      statement.previous_hash = std::string(64, 'b');
      statement.entry_actor = "worker";
      Reprice(statement);
    }
    statement.software = "dpar test";
    statement.build = "a test";
    statement.created_at = "2025-01-01T00:00:00Z";
    const auto envelope = SignStatement(statement, *key);
    ASSERT_TRUE(envelope.ok()) << envelope.status();
    std::ofstream(Path("certificate.json")) << *envelope;
    std::ofstream(Path("signing.pub")) << key->verifying_key().pem();
  }

  std::string directory_;
};

TEST_F(ModelCommandsTest, PredictWritesOneLineForEachNodeAndSaysTheAccuracy) {
  const CommandRun run = RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("g.npz"), "--propagation",
                                     "none", "-o", Path("labels.csv"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["nodes"], 3);
  EXPECT_EQ(run.json()["labelled"], 2);
  EXPECT_EQ(run.json()["accuracy"], 1.0);
  EXPECT_THAT(run.err, HasSubstr("not covered"));
  const std::string csv = Read("labels.csv");
  EXPECT_THAT(csv, HasSubstr("node,class,probability\n0,0,0.9999"));
  EXPECT_THAT(csv, HasSubstr("\n1,1,0.9999"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
}

TEST_F(ModelCommandsTest, PredictWithoutLabelsSaysNoAccuracy) {
  WriteGraph("unlabelled.npz", {-1, -1, -1});
  const CommandRun run = RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("unlabelled.npz")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("predicted  3 nodes, propagation mean-field\n"));
  EXPECT_THAT(run.out, Not(HasSubstr("accuracy")));
}

// Node 2 has no features: alone it is undecided, which goes to class 0, and its neighbour is of class 1.
TEST_F(ModelCommandsTest, PredictUsesTheEdgesUnlessToldNotTo) {
  const auto label_of_node_2 = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"predict",     "--model", Path("model.npz"), "--graph",
                                          Path("g.npz"), "-o",      Path("labels.csv")};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    EXPECT_EQ(RunCommand(arguments).exit_code, 0);
    return Read("labels.csv").substr(Read("labels.csv").find("\n2,") + 3, 1);
  };
  EXPECT_EQ(label_of_node_2({"--propagation", "none"}), "0");
  EXPECT_EQ(label_of_node_2({"--propagation", "power"}), "1");
  EXPECT_EQ(label_of_node_2({"--propagation", "power", "--iterations", "0"}), "0");
}

TEST_F(ModelCommandsTest, PredictSaysTheOptionsItUsed) {
  const std::vector<std::string> base = {"predict", "--model", Path("model.npz"), "--graph", Path("g.npz")};
  const auto run = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunCommand(arguments);
  };
  const Json standard = run({"--json"}).json();
  EXPECT_EQ(standard["propagation"], "mean-field");
  EXPECT_FALSE(standard.contains("alpha"));
  const Json power = run({"--propagation", "power", "--json"}).json();
  EXPECT_EQ(power["alpha"], 0.25);
  EXPECT_EQ(power["iterations"], 2);
  EXPECT_EQ(power["normalisation"], "row");
  EXPECT_EQ(power["self_loops"], false);
  const std::vector<std::string> all = {"--propagation",   "power",     "--alpha",      "0.5",   "--iterations", "7",
                                        "--normalisation", "symmetric", "--self-loops", "--json"};
  const Json given = run(all).json();
  EXPECT_EQ(given["alpha"], 0.5);
  EXPECT_EQ(given["iterations"], 7);
  EXPECT_EQ(given["normalisation"], "symmetric");
  EXPECT_EQ(given["self_loops"], true);
  EXPECT_THAT(run({"--propagation", "power"}).out,
              HasSubstr("propagation power (alpha 0.25, 2 iterations, row normalisation, no self loops)"));
}

TEST_F(ModelCommandsTest, PredictRefusesOptionsOfPowerForAnotherPropagation) {
  for (const std::string propagation : {"mean-field", "none"}) {
    for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
             {"--alpha", "0.5"}, {"--iterations", "2"}, {"--normalisation", "row"}, {"--self-loops"}}) {
      std::vector<std::string> arguments = {"predict",     "--model",       Path("model.npz"), "--graph",
                                            Path("g.npz"), "--propagation", propagation};
      arguments.insert(arguments.end(), flags.begin(), flags.end());
      const CommandRun run = RunCommand(arguments);
      EXPECT_EQ(run.exit_code, 2);
      EXPECT_THAT(run.err, HasSubstr(absl::StrCat(flags[0], " is for --propagation power; --propagation ", propagation,
                                                  " does not take it")));
    }
  }
}

TEST_F(ModelCommandsTest, PredictRefusesOptionsOutOfRange) {
  const auto message = [&](const std::string& flag, const std::string& value) {
    const CommandRun run = RunCommand(
        {"predict", "--model", Path("model.npz"), "--graph", Path("g.npz"), "--propagation", "power", flag, value});
    EXPECT_EQ(run.exit_code, 2);
    return run.err;
  };
  for (const std::string alpha : {"0", "-1", "1.5", "nan", "much"}) {
    EXPECT_THAT(message("--alpha", alpha), HasSubstr(absl::StrCat("got ", alpha)));
  }
  for (const std::string iterations : {"-1", "1001", "2.5", "many"}) {
    EXPECT_THAT(message("--iterations", iterations),
                HasSubstr(absl::StrCat("--iterations must be an integer from 0 to 1000, got ", iterations)));
  }
  EXPECT_THAT(message("--normalisation", "column"), HasSubstr("--normalisation is row or symmetric; not 'column'"));
}

TEST_F(ModelCommandsTest, PredictRefusesBadInput) {
  std::ofstream(Path("text")) << "neither a model nor a graph";
  const auto predict = [&](const std::string& model, const std::string& graph) {
    return RunCommand({"predict", "--model", model, "--graph", graph}).exit_code;
  };
  EXPECT_EQ(predict(Path("missing"), Path("g.npz")), 2);
  EXPECT_EQ(predict(Path("model.npz"), Path("missing")), 2);
  EXPECT_EQ(predict(directory_, Path("g.npz")), 2);
  EXPECT_EQ(predict(Path("text"), Path("g.npz")), 1);
  EXPECT_EQ(predict(Path("model.npz"), Path("text")), 1);
  EXPECT_EQ(predict(Path("g.npz"), Path("model.npz")), 1);
  EXPECT_EQ(RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("g.npz"), "--propagation", "magic"})
                .exit_code,
            2);
  EXPECT_EQ(RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("g.npz"), "-o", directory_}).exit_code,
            2);
}

TEST_F(ModelCommandsTest, VerifyAcceptsAGoodCertificateAndSaysWhereItsTrustComesFrom) {
  WriteCertificate(/*is_public=*/false);
  const CommandRun run = RunCommand({"verify", Path("certificate.json"), "--model", Path("model.npz")});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("VERIFIED: epsilon 1 at delta 1e-05 for every node of tenants/acme/datasets/demo"));
  EXPECT_THAT(run.out, Not(HasSubstr("FAIL")));
  EXPECT_THAT(run.err, HasSubstr("signing.pub beside the certificate"));
  const CommandRun keyed = RunCommand(
      {"verify", Path("certificate.json"), "--model", Path("model.npz"), "--key", Path("signing.pub"), "--json"});
  EXPECT_EQ(keyed.exit_code, 0);
  EXPECT_EQ(keyed.err, "");
  EXPECT_EQ(keyed.json()["passed"], true);
  EXPECT_LE(keyed.json()["recomputed_epsilon"].get<double>(), 1);
  EXPECT_GT(keyed.json()["checks"].size(), 2U);
}

TEST_F(ModelCommandsTest, VerifySaysThatNothingIsPromisedAboutPublicData) {
  WriteCertificate(/*is_public=*/true);
  const CommandRun run = RunCommand({"verify", Path("certificate.json"), "--model", Path("model.npz")});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("nothing is guaranteed"));
  EXPECT_THAT(run.out, Not(HasSubstr("VERIFIED")));
}

TEST_F(ModelCommandsTest, VerifyFailsForAnotherModelAnotherKeyAndChangedBytes) {
  WriteCertificate(/*is_public=*/false);
  const CommandRun model = RunCommand({"verify", Path("certificate.json"), "--model", Path("g.npz"), "--json"});
  EXPECT_EQ(model.exit_code, 1);
  EXPECT_EQ(model.json()["passed"], false);

  std::ofstream(Path("other.pub")) << SigningKey::Generate()->verifying_key().pem();
  const CommandRun key =
      RunCommand({"verify", Path("certificate.json"), "--model", Path("model.npz"), "--key", Path("other.pub")});
  EXPECT_EQ(key.exit_code, 1);
  EXPECT_THAT(key.out, HasSubstr("FAIL signature"));
  EXPECT_THAT(key.out, HasSubstr("NOT VERIFIED"));

  Json envelope = Json::parse(Read("certificate.json"));
  const std::string payload = *Base64Decode(envelope["payload"].get<std::string>());
  envelope["payload"] = Base64Encode(absl::StrReplaceAll(payload, {{"acme", "evil"}}));
  std::ofstream(Path("changed.json")) << envelope.dump();
  EXPECT_EQ(RunCommand({"verify", Path("changed.json"), "--model", Path("model.npz")}).exit_code, 1);
}

TEST_F(ModelCommandsTest, VerifyRefusesBadInput) {
  WriteCertificate(/*is_public=*/false);
  std::ofstream(Path("text")) << "not a certificate";
  const auto verify = [&](const std::string& certificate, const std::string& model, const std::string& key) {
    return RunCommand({"verify", certificate, "--model", model, "--key", key}).exit_code;
  };
  EXPECT_EQ(verify(Path("missing"), Path("model.npz"), Path("signing.pub")), 2);
  EXPECT_EQ(verify(directory_, Path("model.npz"), Path("signing.pub")), 2);
  EXPECT_EQ(verify(Path("certificate.json"), Path("missing"), Path("signing.pub")), 2);
  EXPECT_EQ(verify(Path("certificate.json"), Path("model.npz"), Path("missing")), 2);
  EXPECT_EQ(verify(Path("certificate.json"), Path("model.npz"), Path("text")), 1);
  EXPECT_EQ(verify(Path("text"), Path("model.npz"), Path("signing.pub")), 1);
  std::filesystem::remove(Path("signing.pub"));
  const CommandRun keyless = RunCommand({"verify", Path("certificate.json"), "--model", Path("model.npz")});
  EXPECT_EQ(keyless.exit_code, 2);
  EXPECT_THAT(keyless.err, HasSubstr("--key"));
  EXPECT_EQ(RunCommand({"verify", Path("certificate.json")}).exit_code, 2);
}

}  // namespace
}  // namespace dpar
