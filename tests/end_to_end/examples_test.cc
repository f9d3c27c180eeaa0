// Every example of README.md and of the manual pages, run as it stands there against a real server.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/end_to_end/document.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using Examples = std::map<std::string, std::vector<std::string>>;  // by page

// In the order in which a user could run them: what one makes, others need. Pages that are not named here come at
// kOthers. The last ones take things away.
constexpr const char* kOthers = "...";
const std::vector<std::string>& Order() {
  static const auto* order = new std::vector<std::string>{"dpar-tenant-create",
                                                          "dpar-tenant-list",
                                                          "dpar-token-create",
                                                          "dpar-token-list",
                                                          "dpar-token-rotate",
                                                          "dpar-token-revoke",
                                                          "dpar-login",
                                                          "dpar-profile-list",
                                                          "dpar-profile-show",
                                                          "dpar-profile-use",
                                                          "dpar-whoami",
                                                          "dpar-graph-generate",
                                                          "dpar-graph-inspect",
                                                          "dpar-graph-split",
                                                          "dpar-graph-convert",
                                                          "dpar-upload",
                                                          "dpar-dataset-upload",
                                                          "dpar-datasets",
                                                          "dpar-dataset-list",
                                                          "dpar-dataset-show",
                                                          "dpar-train",
                                                          "dpar-jobs",
                                                          "dpar-job-list",
                                                          "dpar-job-show",
                                                          "dpar-watch",
                                                          "dpar-job-watch",
                                                          "dpar-download",
                                                          "dpar-job-download",
                                                          "dpar-verify",
                                                          "dpar-predict",
                                                          "dpar-evaluate",
                                                          "dpar-population",
                                                          "dpar-population-show",
                                                          "dpar-population-history",
                                                          "dpar-population-merge",
                                                          "dpar-ledger-list",
                                                          "dpar-ledger-verify",
                                                          "dpar-ledger-adjust",
                                                          "dpar-cap",
                                                          "dpar-debit",
                                                          "dpar-spend",
                                                          "dpar-privacy-epsilon",
                                                          "dpar-privacy-delta",
                                                          "dpar-privacy-calibrate",
                                                          "dpar-privacy-compare",
                                                          "dpar-completion",
                                                          kOthers,
                                                          "dpar-cancel",
                                                          "dpar-job-cancel",
                                                          "dpar-dataset-delete",
                                                          "dpar-profile-remove",
                                                          "dpar"};
  return *order;
}

// Those of commands that only an operator may use.
bool IsForOperators(const std::string& command) {
  for (const char* words : {"dpar tenant", "dpar token", "dpar ledger", "dpar cap", "dpar debit", "dpar spend"}) {
    if (absl::StartsWith(command, words)) return true;
  }
  return false;
}

class ExamplesTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    std::filesystem::create_directories(directory());
  }

  static std::string directory() { return server().Scratch("examples"); }

  // Runs a line of shell where the examples' files are. What stands for something of the user's own is filled in.
  static CommandResult Shell(const std::string& line, const std::string& token) {
    Environment environment = server().DparEnvironment(token);
    environment["PATH"] = absl::StrCat(BinaryPath(""), ":/usr/bin:/bin");
    const std::string filled = absl::StrReplaceAll(line, {{"127.0.0.1:7443", server().address()},
                                                          {"HOST:PORT", server().address()},
                                                          {"JOB", job_},
                                                          {"tenants/acme/tokens/ID", token_name_}});
    return RunCommand({"/bin/bash", "-c", absl::StrCat("cd '", directory(), "' && ", filled)}, environment);
  }
  static std::string OwnerToken() { return ReadFile(directory() + "/owner.token"); }

  static CommandResult Must(const std::string& line, const std::string& token) {
    CommandResult result = Shell(line, token);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.out << result.err;
    return result;
  }

  // A queued or running job's id, for commands that end one.
  static void NewJob(const std::string& dataset) {
    const std::string made =
        Must(absl::StrCat("dpar --json train ", dataset, " --epsilon 0.1 --steps 200000 --no-watch"), OwnerToken()).out;
    const std::string mark = "tenants/acme/jobs/";
    const size_t place = made.find(mark);
    ASSERT_NE(place, std::string::npos) << made;
    job_ = made.substr(place + mark.size(), made.find('"', place) - place - mark.size());
  }
  static void NewToken() {
    const std::string made =
        Must("dpar --json token create --tenant acme --role reader", server().operator_token()).out;
    const std::string mark = "tenants/acme/tokens/";
    const size_t place = made.find(mark);
    ASSERT_NE(place, std::string::npos) << made;
    token_name_ = made.substr(place, made.find('"', place) - place);
  }

  static void Run(const std::string& example) {
    if (absl::StrContains(example, "tokens/ID")) NewToken();
    if (absl::StrContains(example, "cancel JOB")) NewJob("demo");
    if (absl::StrContains(example, "population merge")) {
      Must(
          "for name in april customers; do dpar graph generate -o $name.npz --nodes 300 --seed ${#name} && "
          "dpar upload $name.npz --name $name; done",
          OwnerToken());
    }
    const bool logs_in = absl::StartsWith(example, "dpar login");
    // A token that is not in a file is piped in, as one would at a terminal.
    const bool pipes = logs_in && !absl::StrContains(example, "--token-file");
    const std::string line = pipes ? absl::StrCat("cat owner.token | ", example) : example;
    const CommandResult result = Shell(line, IsForOperators(example) ? server().operator_token() : OwnerToken());
    EXPECT_EQ(result.exit_code, 0) << example << "\n" << result.out << result.err;
    if (absl::StartsWith(example, "dpar train demo --epsilon 1") && !absl::StrContains(example, "--dry-run")) {
      const std::string mark = "tenants/acme/jobs/";
      const size_t place = result.out.find(mark);
      if (place != std::string::npos) {
        job_ = result.out.substr(place + mark.size(), result.out.find('\n', place) - place - mark.size());
      }
    }
    if (absl::StrContains(example, "graph generate -o graph.npz")) {
      // The examples' graph comes from tables, so that its model can read the examples' tables.
      Must(
          "dpar graph generate --tables . --nodes 500 && mv accounts.csv customers.csv && cp customers.csv new.csv && "
          "mv accounts.schema.yaml people.schema.yaml && cp transfers.csv new_edges.csv && dpar graph convert "
          "--schema people.schema.yaml --nodes customers.csv --edges transfers.csv -o graph.npz",
          "");
    }
    if (absl::StrContains(example, "graph split") || absl::StrContains(example, "graph generate -o graph.npz")) {
      Must("for name in other people query march; do cp graph.npz $name.npz; done", "");
    }
  }

  static void TearDownTestSuite() {
    job_.clear();
    token_name_.clear();
    SharedServerTest::TearDownTestSuite();
  }

  static std::string job_;
  static std::string token_name_;
};

std::string ExamplesTest::job_;
std::string ExamplesTest::token_name_;

// Commands of a page's .EX blocks; a line that ends in a backslash goes on in the next.
std::vector<std::string> ExamplesOf(const std::string& page) {
  std::vector<std::string> examples;
  bool inside = false;
  bool goes_on = false;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (line == ".EX" || line == ".EE") {
      inside = line == ".EX";
      continue;
    }
    if (!inside) continue;
    std::string text = absl::StrReplaceAll(line, {{"\\-", "-"}, {"\\e", "\\"}, {"\\&", ""}});
    const bool continues = absl::EndsWith(text, "\\");
    text = std::string(absl::StripSuffix(text, "\\"));
    if (goes_on) {
      examples.back() += text;
    } else {
      examples.push_back(text);
    }
    goes_on = continues;
  }
  return examples;
}

TEST_F(ExamplesTest, EveryExampleOfTheManualPagesRuns) {
  const std::string pages = server().Scratch("man");
  std::filesystem::create_directories(pages);
  ASSERT_EQ(server().Dpar("", {"man", pages}).exit_code, 0);
  Examples examples;
  for (const auto& entry : std::filesystem::directory_iterator(pages)) {
    const std::string page = ReadFile(entry.path().string());
    const bool is_group = absl::StrContains(page, ".SH COMMANDS");
    std::vector<std::string> found = ExamplesOf(page);
    EXPECT_TRUE(is_group || !found.empty()) << entry.path() << " has no example";
    if (!found.empty()) examples[entry.path().stem().string()] = std::move(found);
  }
  // What the examples take for granted: the server's files.
  const std::string data = server().data_directory();
  Must(absl::StrCat("cp '", data, "/tls/ca.pem' ca.pem && cp '", data, "/keys/signing.pub' signing.pub"), "");
  std::vector<std::string> order;
  for (const std::string& page : Order()) {
    if (page != kOthers) {
      order.push_back(page);
      continue;
    }
    for (const auto& [other, unused] : examples) {
      if (std::find(Order().begin(), Order().end(), other) == Order().end()) order.push_back(other);
    }
  }
  for (const std::string& page : order) {
    const auto found = examples.find(page);
    ASSERT_NE(found, examples.end()) << "there is no page " << page << " with examples";
    if (page == "dpar") {
      // The first run, for a tenant that has nothing yet: the ids of the one above are taken.
      Must("dpar tenant create first && dpar token create --tenant first --role owner -o owner.token",
           server().operator_token());
      for (std::string& example : found->second)
        example = absl::StrReplaceAll(example, {{"JOB", "$(dpar jobs | sed -n '2s/ .*//p')"}});
    }
    for (const std::string& example : found->second) {
      SCOPED_TRACE(page);
      Run(example);
    }
  }
}

// Lines of README.md that are indented by four and begin with dpar, outside of the recorded run.
std::vector<std::string> ReadmeExamples() {
  std::string text = ReadSource("README.md");
  const std::string begin = "<!-- quickstart output -->";
  const std::string end = "<!-- end of quickstart output -->";
  const size_t first = text.find(begin);
  const size_t last = text.find(end);
  if (first != std::string::npos && last != std::string::npos) text.erase(first, last + end.size() - first);
  std::vector<std::string> examples;
  bool goes_on = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::string_view command = line;
    const bool is_code = absl::ConsumePrefix(&command, "    ");
    absl::ConsumePrefix(&command, "$ ");
    const bool continues = absl::ConsumeSuffix(&command, "\\");
    if (is_code && goes_on) {
      absl::StrAppend(&examples.back(), command);
    } else if (is_code && absl::StartsWith(command, "dpar ")) {
      examples.emplace_back(command);
    }
    goes_on = is_code && continues && (goes_on || absl::StartsWith(command, "dpar "));
  }
  return examples;
}

TEST_F(ExamplesTest, EveryExampleOfReadmeRuns) {
  // The world of the manual pages' examples: a tenant acme with an owner's token, and files.
  const std::string operator_token = server().operator_token();
  std::filesystem::remove_all(directory());
  std::filesystem::create_directories(directory());
  Must(
      "dpar graph generate -o people.npz --nodes 400 && cp people.npz query.npz && cp people.npz graph.npz && "
      "cp people.npz march.npz",
      "");
  Must(absl::StrCat("cp '", server().data_directory(), "/tls/ca.pem' ca.pem && cp '", server().data_directory(),
                    "/keys/signing.pub' signing.pub"),
       "");
  // Client certificates need a server of another configuration; the TLS test has them.
  const auto needs_client_ca = [](const std::string& example) {
    return absl::StrContains(example, "--client-cert") || absl::StrContains(example, "--certificate-uri");
  };
  Shell("dpar tenant create acme", operator_token);
  Must("dpar token create --tenant acme --role owner -o owner.token", operator_token);
  // Of the ids that README uses, those that the manual pages took before are free in another tenant only.
  const std::vector<std::string> examples = ReadmeExamples();
  EXPECT_GE(examples.size(), 20U);
  for (const std::string& example : examples) {
    if (needs_client_ca(example) || absl::StartsWith(example, "dpar tenant create acme")) continue;
    std::string line = absl::StrReplaceAll(example, {{"--name people", "--name readme"},
                                                     {"train people", "train readme"},
                                                     {"population show people", "population show readme"},
                                                     {"population history people", "population history readme"},
                                                     {"--population people", "--population readme"}});
    SCOPED_TRACE(line);
    if (absl::StrContains(line, "tokens/ID")) NewToken();
    const std::string trained = job_;
    const bool cancels = absl::StrContains(line, "cancel JOB");
    if (cancels) NewJob("readme");
    const bool for_operators = IsForOperators(line);
    const CommandResult result = Shell(line, for_operators ? operator_token : OwnerToken());
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    if (cancels) job_ = trained;
    const std::string mark = "tenants/acme/jobs/";
    if (const size_t place = result.out.find(mark);
        place != std::string::npos && absl::StartsWith(line, "dpar train")) {
      job_ = result.out.substr(place + mark.size(), result.out.find('\n', place) - place - mark.size());
    }
  }
}

}  // namespace
}  // namespace dpar::e2e
