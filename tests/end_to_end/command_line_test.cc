// The whole way by the command line, as a person or a script would take it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/harness.h"
#include "tests/end_to_end/json_output.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;

class CommandLineTest : public SharedServerTest {
 protected:
  // Runs a command that must succeed.
  static CommandResult Must(const std::string& token, const std::vector<std::string>& arguments) {
    CommandResult result = server().Dpar(token, arguments);
    EXPECT_EQ(result.exit_code, 0) << "dpar " << arguments[0] << "\n" << result.out << result.err;
    return result;
  }

  // The same with --json; the last object. `words` is how many arguments make up the command's name.
  static nlohmann::json MustJson(const std::string& token, std::vector<std::string> arguments, size_t words = 1) {
    const std::string command = words == 1 ? arguments[0] : absl::StrCat(arguments[0], " ", arguments[1]);
    arguments.emplace_back("--json");
    const CommandResult result = Must(token, arguments);
    std::vector<nlohmann::json> objects = JsonLines(result, command);
    EXPECT_FALSE(objects.empty()) << command << result.out << result.err;
    if (command != "train" && command != "watch" && command != "job watch") {
      EXPECT_EQ(objects.size(), 1U) << command;
    }
    return objects.empty() ? nlohmann::json() : objects.back();
  }

  // A tenant and its owner's token, made by the command line.
  static std::string MakeTenant(const std::string& id) {
    const std::string operator_token = server().operator_token();
    const nlohmann::json tenant = MustJson(operator_token, {"tenant", "create", id}, 2);
    EXPECT_EQ(FindText(tenant, "tenants/"), absl::StrCat("tenants/", id));
    const nlohmann::json token =
        MustJson(operator_token, {"token", "create", "--tenant", id, "--role", "owner", "--purpose", "a test"}, 2);
    const std::string secret = FindText(token, "dpar_");
    EXPECT_THAT(secret, ::testing::MatchesRegex("dpar_[a-z0-9-]+_[0-9a-f]+"));
    return secret;
  }
};

TEST_F(CommandLineTest, AGraphGoesInAndAVerifiedModelComesOut) {
  const std::string owner = MakeTenant("acme");
  const std::string graph = server().Scratch("graph.npz");
  const std::string train = server().Scratch("train.npz");
  const std::string test = server().Scratch("test.npz");
  Must("", {"graph", "generate", "-o", graph, "--nodes", "3000", "--classes", "3", "--features", "100"});
  Must("", {"graph", "inspect", graph});
  Must("", {"graph", "split", graph, "--train", train, "--test", test, "--test-share", "0.2"});

  Must(owner, {"upload", train, "--name", "people", "--classes", "3"});
  EXPECT_THAT(Must(owner, {"datasets"}).out, HasSubstr("people"));
  Must(owner, {"train", "people", "--epsilon", "1"});
  const nlohmann::json jobs = MustJson(owner, {"jobs"});
  const std::string job = FindText(jobs, "tenants/acme/jobs/");
  ASSERT_NE(job, "");
  EXPECT_EQ(FindMember(jobs, "state"), "succeeded");
  EXPECT_THAT(Must(owner, {"jobs"}).out, HasSubstr("succeeded"));

  const nlohmann::json budget = MustJson(owner, {"population", "people"});
  EXPECT_EQ(FindMember(budget, "cap_epsilon"), 8);
  EXPECT_EQ(FindMember(budget, "reserved_units"), 0);
  EXPECT_GT(FindMember(budget, "posted_units"), 0);

  const std::string out = server().Scratch("model");
  Must(owner, {"download", job, "-o", out});
  for (const char* file : {"/model.npz", "/model.pt", "/certificate.json", "/signing.pub"}) {
    EXPECT_NE(ReadFile(out + file), "") << file;
  }
  Must("", {"verify", out + "/certificate.json", "--model", out + "/model.npz", "--model", out + "/model.pt"});
  const std::string labels = server().Scratch("labels.csv");
  Must("", {"predict", "--model", out + "/model.npz", "--graph", test, "-o", labels});
  EXPECT_NE(ReadFile(labels), "");
  const nlohmann::json predicted = MustJson("", {"predict", "--model", out + "/model.npz", "--graph", test});
  // Three balanced classes: chance is 0.33. What the model reaches is the accuracy tests' business.
  EXPECT_GT(FindMember(predicted, "accuracy"), 0.5);
}

TEST_F(CommandLineTest, VerifyFailsWhenOneByteOfAModelOrTheCertificateIsFlipped) {
  const std::string owner = MakeTenant("flip");
  const std::string graph = server().Scratch("flip.npz");
  Must("", {"graph", "generate", "-o", graph, "--nodes", "200", "--classes", "3", "--features", "30"});
  Must(owner, {"upload", graph, "--name", "small", "--classes", "3"});
  const std::string job = FindText(MustJson(owner, {"train", "small", "--epsilon", "1"}), "tenants/flip/jobs/");
  const std::string out = server().Scratch("flip-model");
  Must(owner, {"download", job, "-o", out});
  const std::string certificate = out + "/certificate.json";
  for (const std::string file : {"/model.npz", "/model.pt"}) {
    Must("", {"verify", certificate, "--model", out + file});
    const std::string good = ReadFile(out + file);
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
    WriteFile(out + file, bad);
    EXPECT_EQ(server().Dpar("", {"verify", certificate, "--model", out + file}).exit_code, 1) << file;
    WriteFile(out + file, good);
    Must("", {"verify", certificate, "--model", out + file});
  }
  std::string envelope = ReadFile(certificate);
  const size_t payload = envelope.find("\"payload\":\"");
  ASSERT_NE(payload, std::string::npos);
  char& digit = envelope[payload + 200];
  digit = digit == 'A' ? 'B' : 'A';
  WriteFile(certificate, envelope);
  EXPECT_EQ(server().Dpar("", {"verify", certificate, "--model", out + "/model.npz"}).exit_code, 1);
}

TEST_F(CommandLineTest, VerifyFailsUnderAnotherServersKey) {
  TestServer other;
  ASSERT_TRUE(other.Start());
  const std::string owner = MakeTenant("keys");
  const std::string graph = server().Scratch("keys.npz");
  Must("", {"graph", "generate", "-o", graph, "--nodes", "200", "--classes", "3", "--features", "30"});
  Must(owner, {"upload", graph, "--name", "small", "--classes", "3"});
  const std::string job = FindText(MustJson(owner, {"train", "small", "--epsilon", "1"}), "tenants/keys/jobs/");
  const std::string out = server().Scratch("keys-model");
  Must(owner, {"download", job, "-o", out});
  const std::string certificate = out + "/certificate.json";
  const std::string key = server().data_directory() + "/keys/signing.pub";
  const std::string other_key = other.data_directory() + "/keys/signing.pub";
  Must("", {"verify", certificate, "--model", out + "/model.npz", "--key", key});
  EXPECT_EQ(server().Dpar("", {"verify", certificate, "--model", out + "/model.npz", "--key", other_key}).exit_code, 1);
}

TEST_F(CommandLineTest, EveryCommandPrintsOneEnvelopeAsJson) {
  const std::string owner = MakeTenant("json");
  const std::string operator_token = server().operator_token();
  const std::string graph = server().Scratch("json.npz");
  const std::string half = server().Scratch("json-train.npz");
  const std::string rest = server().Scratch("json-test.npz");
  const std::string out = server().Scratch("json-model");
  MustJson("", {"graph", "generate", "-o", graph, "--nodes", "200", "--classes", "3", "--features", "30"}, 2);
  EXPECT_EQ(FindMember(MustJson("", {"graph", "inspect", graph}, 2), "node_count"), 200);
  MustJson("", {"graph", "split", graph, "--train", half, "--test", rest}, 2);
  MustJson(owner, {"upload", half, "--name", "half", "--classes", "3", "--cap-epsilon", "4"});
  EXPECT_EQ(FindText(MustJson(owner, {"datasets"}), "tenants/json/datasets/"), "tenants/json/datasets/half");
  MustJson(owner, {"train", "half", "--epsilon", "1", "--dry-run"});
  const nlohmann::json trained = MustJson(owner, {"train", "half", "--epsilon", "1"});
  EXPECT_EQ(trained.value("terminal", false), true);
  const std::string job = FindText(trained, "tenants/json/jobs/");
  ASSERT_NE(job, "");
  EXPECT_EQ(MustJson(owner, {"watch", job}).value("terminal", false), true);
  MustJson(owner, {"jobs"});
  EXPECT_EQ(FindMember(MustJson(owner, {"population", "half"}), "cap_epsilon"), 4);
  MustJson(owner, {"download", job, "-o", out});
  MustJson("", {"verify", out + "/certificate.json", "--model", out + "/model.npz"});
  MustJson("", {"predict", "--model", out + "/model.npz", "--graph", rest});
  MustJson("", {"predict", "--model", out + "/model.npz", "--graph", rest, "--propagation", "none"});
  const std::string dataset = "tenants/json/datasets/half";
  MustJson(operator_token, {"cap", dataset, "--epsilon", "6", "--reason", "agreed"});
  EXPECT_EQ(FindMember(MustJson(owner, {"population", dataset}), "cap_epsilon"), 6);
  const std::string csv = server().Scratch("json.csv");
  MustJson("", {"predict", "--model", out + "/model.npz", "--graph", rest, "-o", csv});
  EXPECT_GT(FindMember(MustJson("", {"evaluate", "--predictions", csv, "--graph", rest}), "accuracy"), 0);
  EXPECT_EQ(FindMember(MustJson("", {"predict", "--model", out + "/model.npz", "--graph", half}), "training_graph"),
            true);
  EXPECT_EQ(FindMember(MustJson("", {"predict", "--model", out + "/model.npz", "--graph", rest}), "training_graph"),
            false);
  MustJson("", {"completion", "bash"});
  EXPECT_EQ(FindMember(MustJson(operator_token, {"ledger", "verify"}, 2), "intact"), true);
  MustJson(operator_token, {"ledger", "list"}, 2);
  MustJson(operator_token, {"ledger", "list", dataset}, 2);
  MustJson(operator_token, {"ledger", "adjust", dataset, "--debit-units", "1", "--reason", "a test"}, 2);
  MustJson(operator_token, {"tenant", "list"}, 2);
  const nlohmann::json made = MustJson(operator_token, {"token", "create", "--tenant", "json", "--role", "reader"}, 2);
  MustJson(operator_token, {"token", "list", "--tenant", "json"}, 2);
  MustJson(operator_token, {"token", "revoke", FindText(made, "tenants/json/tokens/")}, 2);
  EXPECT_EQ(server().Dpar(FindText(made, "dpar_"), {"jobs"}).exit_code, 4);
}

TEST_F(CommandLineTest, NounsAndVerbsDoWhatTheShortFormsDo) {
  const std::string owner = MakeTenant("nouns");
  const std::string graph = server().Scratch("nouns.npz");
  Must("", {"graph", "generate", "-o", graph, "--nodes", "200", "--classes", "3", "--features", "30"});
  MustJson(owner, {"dataset", "upload", graph, "--name", "half", "--classes", "3"}, 2);
  EXPECT_EQ(FindText(MustJson(owner, {"dataset", "list"}, 2), "datasets/"), "tenants/nouns/datasets/half");
  const nlohmann::json shown = MustJson(owner, {"dataset", "show", "half"}, 2);
  EXPECT_EQ(FindMember(shown, "node_count"), 200);
  EXPECT_EQ(FindMember(shown, "digest_key_kept"), true);
  const nlohmann::json queued = MustJson(owner, {"train", "half", "--epsilon", "1", "--no-watch"});
  EXPECT_EQ(queued.value("terminal", false), true);
  const std::string job = FindText(queued, "tenants/nouns/jobs/");
  EXPECT_EQ(MustJson(owner, {"job", "watch", job}, 2).value("terminal", false), true);
  EXPECT_EQ(FindMember(MustJson(owner, {"job", "show", job}, 2), "state"), "succeeded");
  EXPECT_EQ(FindText(MustJson(owner, {"job", "list"}, 2), "jobs/"), job);
  MustJson(owner, {"job", "download", job, "-o", server().Scratch("nouns-model")}, 2);
  EXPECT_GT(FindMember(MustJson(owner, {"population", "show", "half"}, 2), "posted_units"), 0);
  MustJson(owner, {"population", "show"}, 2);
  EXPECT_EQ(FindMember(MustJson(owner, {"population", "history", "half"}, 2), "intact"), true);
  EXPECT_EQ(server().Dpar(owner, {"job", "cancel", job}).exit_code, 1);
  EXPECT_EQ(server().Dpar(owner, {"dataset", "delete", "half"}).exit_code, 2);
  MustJson(owner, {"dataset", "delete", "half", "--yes"}, 2);
  EXPECT_EQ(server().Dpar(owner, {"dataset", "show", "half"}).exit_code, 1);
}

TEST_F(CommandLineTest, AQueuedJobIsCancelledByTheCommandLine) {
  const std::string owner = MakeTenant("cancel");
  const std::string graph = server().Scratch("cancel.npz");
  Must("", {"graph", "generate", "-o", graph, "--nodes", "20000", "--classes", "100", "--features", "3000"});
  Must(owner, {"upload", graph, "--name", "large", "--classes", "100"});
  const nlohmann::json started = MustJson(owner, {"train", "large", "--epsilon", "1", "--no-watch"});
  const std::string job = FindText(started, "tenants/cancel/jobs/");
  ASSERT_NE(job, "");
  MustJson(owner, {"cancel", job});
  const CommandResult watched = server().Dpar(owner, {"watch", job, "--json"});
  const std::vector<nlohmann::json> lines = JsonLines(watched, "watch");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(FindMember(lines.back(), "state"), "cancelled");
  EXPECT_EQ(FindMember(MustJson(owner, {"population", "large"}), "reserved_units"), 0);
}

TEST_F(CommandLineTest, AMistakeInUsageIsExitCodeTwoAndOneEnvelope) {
  const std::vector<std::vector<std::string>> mistakes = {
      {"no-such-command"},   {"train"},  {"train", "x"},    {"upload"},
      {"graph", "generate"}, {"verify"}, {"jobs", "--what"}};
  for (const std::vector<std::string>& arguments : mistakes) {
    const CommandResult result = server().Dpar("", arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << result.err;
    EXPECT_EQ(result.out, "") << arguments[0];
    EXPECT_NE(result.err, "") << arguments[0];
  }
  const CommandResult json = server().Dpar("", {"train", "x", "--json"});
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_EQ(JsonLines(json, "train").size(), 1U) << json.out;
}

TEST_F(CommandLineTest, AFileThatIsNoGraphIsRefusedWithItsArrayNamed) {
  const std::string owner = MakeTenant("nograph");
  const std::string file = server().Scratch("nograph.npz");
  WriteFile(file, "this is not a zip");
  const CommandResult upload = server().Dpar(owner, {"upload", file, "--name", "bad", "--classes", "3"});
  EXPECT_EQ(upload.exit_code, 1) << upload.err;
  const CommandResult absent = server().Dpar(owner, {"upload", server().Scratch("absent.npz")});
  EXPECT_NE(absent.exit_code, 0);
  EXPECT_THAT(absent.err, HasSubstr("absent.npz"));
  EXPECT_THAT(Must(owner, {"datasets", "--json"}).out, ::testing::Not(HasSubstr("tenants/nograph/datasets/")));
}

TEST_F(CommandLineTest, TheTokenMayComeFromAFile) {
  const std::string file = server().data_directory() + "/operator.token";
  const CommandResult result = server().Dpar("", {"--token-file", file, "tenant", "list"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace dpar::e2e
