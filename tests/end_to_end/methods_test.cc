// Every method through the real programs: trained on private data, downloaded, verified, and charged stage by stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/certificate/signing_key.h"
#include "core/plan/plan_event.h"
#include "tests/end_to_end/json_output.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MethodsTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    if (HasFatalFailure()) return;
    tenant_ = server().NewTenant();
    graph_ = server().Scratch(tenant_.id + ".npz");
    WriteFile(graph_, GraphBytes(MakeGraph(1100, {.nodes = 400, .classes = 3, .features = 60})));
  }

  CommandResult Run(const std::vector<std::string>& arguments) const {
    return server().Dpar(tenant_.owner_token, arguments);
  }
  CommandResult Must(const std::vector<std::string>& arguments) const {
    CommandResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments[0] << "\n" << result.out << result.err;
    return result;
  }
  void Upload(bool is_public = false) const {
    std::vector<std::string> arguments = {"upload", graph_, "--name", "demo"};
    if (is_public) arguments.emplace_back("--public");
    Must(arguments);
  }
  // Trains with these flags; the last object that --json prints.
  nlohmann::json Train(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"train", "demo", "--json"});
    const std::vector<nlohmann::json> lines = JsonLines(Must(flags), "train");
    return lines.empty() ? nlohmann::json() : lines.back();
  }
  // Downloads the job's model, has `dpar verify` check it, and gives what its certificate states.
  Statement Verified(const nlohmann::json& trained) const {
    const std::string job = FindText(trained, absl::StrCat(tenant_.name, "/jobs/"));
    const std::string out = server().Scratch(job.substr(job.rfind('/') + 1));
    Must({"download", job, "-o", out});
    Must({"verify", out + "/certificate.json", "--model", out + "/model.npz"});
    const auto key = VerifyingKey::FromPem(ReadFile(out + "/signing.pub"));
    EXPECT_TRUE(key.ok()) << key.status();
    if (!key.ok()) return {};
    const auto verification = VerifyCertificate(ReadFile(out + "/certificate.json"), {*key}, {});
    EXPECT_TRUE(verification.ok()) << verification.status();
    return verification.ok() ? verification->statement : Statement();
  }
  static std::set<std::string> StageNames(const Statement& statement) {
    std::set<std::string> names;
    for (const Stage& stage : StagesOf(statement.plan.event())) names.insert(stage.name);
    return names;
  }
  // The stages of the ledger's last entry, each of which must cost something.
  std::set<std::string> PostedStages() const {
    const std::vector<nlohmann::json> budget =
        JsonLines(Must({"population", "demo", "--entries", "--json"}), "population");
    std::set<std::string> names;
    const nlohmann::json entries = budget.empty() ? nlohmann::json() : FindMember(budget[0], "entries");
    EXPECT_TRUE(entries.is_array() && !entries.empty()) << entries;
    if (!entries.is_array() || entries.empty()) return names;
    EXPECT_EQ(entries.back().value("kind", ""), "post");
    for (const nlohmann::json& stage : entries.back().at("stages")) {
      names.insert(stage.value("stage", ""));
      EXPECT_GT(stage.value("units", 0), 0) << stage;
    }
    return names;
  }
  void ExpectRefused(std::vector<std::string> flags, int exit_code, const std::string& message) const {
    flags.insert(flags.begin(), {"train", "demo"});
    const CommandResult result = Run(flags);
    EXPECT_EQ(result.exit_code, exit_code) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  }

  TenantAccess tenant_;
  std::string graph_;
};

TEST_F(MethodsTest, ThoseThatReadEdgesAreTrainedUnderADegreePromiseThatTheCertificateNames) {
  Must({"upload", graph_, "--name", "demo", "--max-degree", "60"});
  EXPECT_THAT(Must({"dataset", "show", "demo"}).out, HasSubstr("promise     at most 60 neighbours a node (public)\n"));
  const std::vector<std::pair<std::string, std::set<std::string>>> methods = {
      {"gap", {"encoder", "aggregation", "dp-sgd"}}, {"sage", {"dp-sgd"}}};
  for (const auto& [method, stages] : methods) {
    const nlohmann::json trained = Train({"--epsilon", "2", "--method", method, "--steps", "20"});
    ASSERT_EQ(FindMember(trained, "state"), "succeeded") << trained;
    const Statement statement = Verified(trained);
    EXPECT_EQ(statement.plan.max_degree(), 60);
    EXPECT_EQ(StageNames(statement), stages);
    EXPECT_EQ(PostedStages(), stages);
    const std::string job = FindText(trained, absl::StrCat(tenant_.name, "/jobs/"));
    const std::string out = server().Scratch(job.substr(job.rfind('/') + 1));
    EXPECT_THAT(Must({"certificate", "show", out + "/certificate.json", "--key", out + "/signing.pub"}).out,
                HasSubstr("more than 60"));
    const std::string other = server().Scratch(tenant_.id + "-other.npz");
    WriteFile(other, GraphBytes(MakeGraph(1101, {.nodes = 200, .classes = 3, .features = 60})));
    EXPECT_THAT(Must({"predict", "--model", out + "/model.npz", "--graph", other}).out,
                HasSubstr("predicted  200 nodes, propagation none\n"));
  }
}

TEST_F(MethodsTest, AFileThatBreaksItsDegreePromiseIsRefusedWithThePromiseAlone) {
  const CommandResult result = Run({"upload", graph_, "--name", "demo", "--max-degree", "1"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.err, HasSubstr("more than the 1 neighbours that were declared"));
}

TEST_F(MethodsTest, AFileAboveItsBoundsIsRefusedBeforeItIsSentAndTheFlagIsNamed) {
  const auto refused = [&](const std::string& flag, const std::string& value, const std::string& message) {
    const CommandResult result = Run({"upload", graph_, "--name", "demo", flag, value});
    EXPECT_NE(result.exit_code, 0) << result.out;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_THAT(result.err, Not(HasSubstr("uploading")));
  };
  refused("--edge-bound", "7", "more than 7 edges. Upload it again with a larger edge_bound: --edge-bound NUMBER");
  refused("--entry-bound", "8", "more than 8 entries other than 0. Upload it again with a larger entry_bound");
  for (const std::string flag : {"--edge-bound", "--entry-bound"}) {
    for (const std::string text : {"0", "-1", "9223372036854775807", "9223372036854775808", "nan", "inf", "1e6"}) {
      refused(flag, text, flag);
    }
  }
  const CommandResult none =
      Must({"upload", graph_, "--name", "demo", "--edge-bound", "5000", "--entry-bound", "20000"});
  EXPECT_THAT(none.out, HasSubstr("bounds      at most 5,000 edges and 20,000 feature entries (public)\n"));
  EXPECT_THAT(Must({"dataset", "show", "demo"}).out,
              HasSubstr("bounds      at most 5,000 edges and 20,000 feature entries (public)\n"));
}

struct MethodCase {
  std::string typed;
  std::string planned;
  bool reads_edges;

  friend std::ostream& operator<<(std::ostream& out, const MethodCase& method) { return out << method.typed; }
};

class EachMethodTest : public MethodsTest, public ::testing::WithParamInterface<MethodCase> {};

TEST_P(EachMethodTest, IsTrainedDownloadedVerifiedAndCharged) {
  Upload();
  const nlohmann::json trained = Train({"--epsilon", "2", "--method", GetParam().typed});
  ASSERT_EQ(FindMember(trained, "state"), "succeeded") << trained;
  EXPECT_EQ(FindMember(trained, "method"), GetParam().planned);
  const Statement statement = Verified(trained);
  EXPECT_LE(statement.plan.epsilon(), 2);
  EXPECT_EQ(StageNames(statement).count("dp-sgd"), 1U);
  EXPECT_EQ(StageNames(statement).count("dp-appr"), GetParam().reads_edges ? 1U : 0U);
  EXPECT_EQ(PostedStages(), StageNames(statement));
}

INSTANTIATE_TEST_SUITE_P(Methods, EachMethodTest,
                         ::testing::Values(MethodCase{"dpar-em0", "dpar-em0", true},
                                           MethodCase{"dpar-em1", "dpar-em1", true},
                                           MethodCase{"dpar-gm", "dpar-gm", true},
                                           MethodCase{"features", "features", false},
                                           MethodCase{"auto", "features", false}),
                         [](const ::testing::TestParamInfo<MethodCase>& method) {
                           std::string name = method.param.typed;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(MethodsTest, AnEvaluationIsShownCertifiedAndCharged) {
  Upload();
  const CommandResult shown =
      Must({"train", "demo", "--epsilon", "2", "--evaluate", "0.25", "--evaluation-share", "0.2"});
  EXPECT_THAT(shown.out,
              ::testing::ContainsRegex("accuracy  [01]\\.[0-9][0-9] \\(95%: [01]\\.[0-9]+ to [01]\\.[0-9]+\\) on "
                                       "100 held-out nodes, noisy, charged"));
  EXPECT_EQ(PostedStages().count("evaluation"), 1U);
  const std::vector<nlohmann::json> jobs = JsonLines(Must({"jobs", "--json"}), "jobs");
  ASSERT_EQ(jobs.size(), 1U);
  const nlohmann::json evaluation = FindMember(jobs[0], "evaluation");
  EXPECT_EQ(evaluation.value("held_out_slots", 0), 100) << jobs[0];
  const Statement statement = Verified(jobs[0]);
  ASSERT_TRUE(statement.evaluation.has_value());
  EXPECT_EQ(statement.evaluation->accuracy(), evaluation.value("accuracy", -1.0));
}

TEST_F(MethodsTest, PublicDataIsTrainedWithoutNoise) {
  Upload(/*is_public=*/true);
  const nlohmann::json trained = Train({"--non-private", "--method", "dpar-em0"});
  ASSERT_EQ(FindMember(trained, "state"), "succeeded") << trained;
  const Statement statement = Verified(trained);
  EXPECT_TRUE(statement.is_public);
  EXPECT_TRUE(statement.plan.non_private());
}

TEST_F(MethodsTest, OptionsTravelFromTheFlagsToTheCertificate) {
  Upload();
  const nlohmann::json trained =
      Train({"--epsilon", "4", "--method", "dpar-gm", "--appr-nodes", "30", "--top-k", "3", "--batch-size", "100",
             "--steps", "40", "--optimizer", "adam", "--hidden-size", "8", "--transform", "unit"});
  ASSERT_EQ(FindMember(trained, "state"), "succeeded") << trained;
  const v1::Plan plan = Verified(trained).plan;
  EXPECT_EQ(plan.structure().appr_nodes(), 30);
  EXPECT_EQ(plan.structure().top_k(), 3);
  EXPECT_EQ(plan.batch_size(), 100);
  EXPECT_EQ(plan.steps(), 40);
  EXPECT_EQ(plan.optimizer(), v1::ADAM);
  EXPECT_EQ(plan.hidden_size(), 8);
  EXPECT_EQ(plan.transform(), v1::UNIT);
}

TEST_F(MethodsTest, ADryRunShowsTheWholePlanAndSpendsNothing) {
  Upload();
  const CommandResult shown =
      Must({"train", "demo", "--epsilon", "2", "--method", "dpar-em1", "--evaluate", "0.2", "--dry-run"});
  for (const char* part :
       {"method            dpar-em1", "steps             ", "structure         M 70, K 2, clip 0.001, noise Gumbel ",
        "evaluation        on 80 held-out slots", "guarantee         epsilon 2 at delta 0.0002", "price             ",
        "  dp-appr         ", "  dp-sgd          ", "  evaluation      ",
        "dpar train demo --epsilon 2 --evaluate 0.2 --method dpar-em1"}) {
    EXPECT_THAT(shown.out, HasSubstr(part));
  }
  const CommandResult paper =
      Must({"train", "demo", "--epsilon", "0.1", "--preset", "paper", "--batch-size", "20", "--dry-run"});
  EXPECT_THAT(paper.out, HasSubstr("the paper's claim, not a bound"));
  EXPECT_THAT(Must({"jobs"}).out, HasSubstr("no jobs yet"));
}

TEST_F(MethodsTest, WhatCannotBeTrainedIsRefusedAndSpendsNothing) {
  Upload();
  ExpectRefused({"--epsilon", "1", "--batch-size", "401"}, 2, "options.batch_size");
  ExpectRefused({"--epsilon", "1", "--gradient-clip", "0"}, 2, "options.gradient_clip");
  ExpectRefused({"--epsilon", "1", "--method", "dpar-em0", "--structure-share", "1.5"}, 2, "options.structure_share");
  ExpectRefused({"--non-private"}, 2, "only a dataset that was declared public");
  EXPECT_THAT(Must({"jobs"}).out, HasSubstr("no jobs yet"));
}

TEST_F(MethodsTest, ClassesThatDoNotOccurAreTakenAndLearntOf) {
  EXPECT_THAT(Must({"upload", graph_, "--name", "demo", "--classes", "5"}).out, HasSubstr("5 classes (public)"));
  EXPECT_EQ(Run({"train", "demo", "--epsilon", "1"}).exit_code, 0);
}

}  // namespace
}  // namespace dpar::e2e
