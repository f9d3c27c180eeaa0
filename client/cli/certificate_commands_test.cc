// certificate verify and show, on files that the test makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/certificate_document.h"
#include "client/cli/format.h"
#include "client/cli/testing/command_run.h"
#include "core/certificate/certificate.h"
#include "core/certificate/testing/example_statement.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunCommand;

class CertificateCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/certificate_commands_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Write("model.npz", "npz");
    Write("model.pt", "pt");
    Write("certificate.json", SignStatement(ExampleStatement(), key_).value());
    Write("key.pub", key_.verifying_key().pem());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  [[nodiscard]] std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] CommandRun Verify(std::vector<std::string> more) const {
    more.insert(more.begin(), {"certificate", "verify", Path("certificate.json"), "--model", Path("model.npz")});
    return RunCommand(more);
  }
  [[nodiscard]] CommandRun Show(std::vector<std::string> more) const {
    more.insert(more.begin(), {"certificate", "show", Path("certificate.json"), "--key", Path("key.pub")});
    return RunCommand(more);
  }

  SigningKey key_ = SigningKey::Generate().value();
  std::string directory_;
};

TEST_F(CertificateCommandsTest, BothSpellingsOfVerifySayTheSame) {
  const CommandRun spelled = Verify({"--model", Path("model.pt"), "--key", Path("key.pub")});
  EXPECT_EQ(spelled.exit_code, 0) << spelled.out << spelled.err;
  EXPECT_EQ(spelled.out, RunCommand({"verify", Path("certificate.json"), "--model", Path("model.npz"), "--model",
                                     Path("model.pt"), "--key", Path("key.pub")})
                             .out);
  std::vector<std::string> lines = absl::StrSplit(spelled.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 10U);
  const std::string last = lines.back();
  lines.pop_back();
  for (const std::string& line : lines) {
    EXPECT_EQ(line.rfind("ok   ", 0), 0U) << line;
  }
  EXPECT_EQ(last, "VERIFIED: epsilon 1 at delta 3e-05 for every node of tenants/acme/datasets/cora");
}

TEST_F(CertificateCommandsTest, TrustsTheKeysOfADirectory) {
  std::filesystem::create_directory(Path("keys"));
  Write("keys/README", "not a key");
  EXPECT_EQ(Verify({"--key", Path("keys")}).exit_code, 2);
  Write("keys/a.pub", SigningKey::Generate()->verifying_key().pem());
  EXPECT_EQ(Verify({"--key", Path("keys")}).exit_code, 1);
  Write("keys/b.pem", key_.verifying_key().pem());
  EXPECT_EQ(Verify({"--key", Path("keys")}).exit_code, 0);
  EXPECT_EQ(Verify({"--key", Path("keys/a.pub"), "--key", Path("key.pub")}).exit_code, 0);
  Write("keys/c.pub", "damaged");
  const CommandRun damaged = Verify({"--key", Path("keys")});
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.err, HasSubstr("c.pub' holds no Ed25519 public key"));
}

TEST_F(CertificateCommandsTest, ReportsARevokedKeyWhereverItIsListed) {
  KnownKey revoked(key_.verifying_key());
  revoked.revoke_time = absl::FromUnixSeconds(1767323045);
  revoked.revoke_reason = "a laptop was lost";
  Write("revoked.pem", FormatKeyList({SigningKey::Generate()->verifying_key(), revoked}));
  for (const std::vector<std::string>& trust : std::vector<std::vector<std::string>>{
           {"--key", Path("revoked.pem")}, {"--key", Path("key.pub"), "--key", Path("revoked.pem")}}) {
    const CommandRun run = Verify(trust);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.out, HasSubstr("ok   signature: signed by key " + key_.verifying_key().key_id()));
    EXPECT_THAT(run.out, HasSubstr("FAIL key: the key was revoked on 2026-01-02T03:04:05Z: a laptop was lost"));
    EXPECT_THAT(run.out, HasSubstr("ok   ledger entry: "));
    EXPECT_THAT(run.out, HasSubstr("NOT VERIFIED"));
  }
  const CommandRun json = Verify({"--key", Path("revoked.pem"), "--json"});
  EXPECT_EQ(json.json()["passed"], false);
  EXPECT_EQ(json.json()["key_id"], key_.verifying_key().key_id());
  EXPECT_EQ(json.json()["checks"][1]["name"], "key");
  EXPECT_FALSE(json.json().contains("statement"));
}

TEST_F(CertificateCommandsTest, ShowsEverythingThatTheCertificateStates) {
  const CommandRun run = Show({"--model", Path("model.npz")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("PRIVACY CERTIFICATE\n\nWhat is guaranteed\n"));
  EXPECT_THAT(run.out, HasSubstr("Node-level differential privacy with epsilon 1.0 and delta 3e-05."));
  // e, rounded up, and 1 / delta, rounded down.
  EXPECT_THAT(run.out, HasSubstr("2.71829 times"));
  EXPECT_THAT(run.out, HasSubstr("1 in 33,333"));
  for (const std::string heading :
       {"What it is about", "The population's budget", "What was released", "What was not released",
        "What is not protected", "Who is trusted", "What was charged", "How the model was made", "Who signed it",
        "What was checked"}) {
    EXPECT_THAT(run.out, HasSubstr("\n" + heading + "\n"));
  }
  EXPECT_THAT(run.out, HasSubstr("All jobs on this population together are held to epsilon "));
  EXPECT_THAT(absl::StrReplaceAll(run.out, {{"\n  ", " "}}),
              HasSubstr("unless an operator raises it or more than 100% of it is used"));
  EXPECT_THAT(run.out, HasSubstr("Used before this job: 1,234,567 units"));
  EXPECT_THAT(run.out, HasSubstr("Built from: commit 0123456789ab, GNU 12.2.0, Release"));
  EXPECT_THAT(run.out, HasSubstr("learning rate: 35.6789012345"));
  EXPECT_THAT(run.out, HasSubstr("dp-sgd [gaussian: sensitivity "));
  EXPECT_THAT(run.out, HasSubstr("VERIFIED: epsilon 1 at delta 3e-05"));
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(run.out, '\n'))) {
    EXPECT_LE(DisplayWidth(line), 110) << line;
  }
}

TEST_F(CertificateCommandsTest, ShowsThePapersClaimAsThat) {
  v1::TrainingSpec spec;
  spec.set_epsilon(0.5);
  spec.set_method(v1::FEATURES);
  spec.set_preset(v1::PAPER);
  Write("certificate.json", SignStatement(ExampleStatement(spec), key_).value());
  const CommandRun run = Show({});
  EXPECT_THAT(run.out, HasSubstr("The paper's claim, not the guarantee: epsilon 0.4999"));
}

TEST_F(CertificateCommandsTest, ShowsInALineWhatWasReadOffTheData) {
  EXPECT_THAT(Verify({"--key", Path("key.pub")}).out, Not(HasSubstr("read off the data")));
  EXPECT_THAT(Show({}).out, Not(HasSubstr("Read off the data")));
  Statement statement = ExampleStatement();
  Json classes = Json::array();
  for (int64_t i = 0; i < statement.sizes.class_count; ++i) {
    classes.push_back(absl::StrCat("c", i));
  }
  statement.schema = absl::StrCat(R"({"nodes":{"id":"a","label":{"column":"l","classes":)", classes.dump(),
                                  R"(},"columns":{"n":{"type":"number","range":[0.0,9.0]},"w":{"type":"text","width":)",
                                  statement.sizes.feature_count - 20,
                                  R"(}}},"edges":{"source":"s","target":"t"},"accepted_observed":["l","n"]})");
  Write("certificate.json", SignStatement(statement, key_).value());
  EXPECT_THAT(Verify({"--key", Path("key.pub")}).out, HasSubstr("\nread off the data: l, n\n"));
  EXPECT_EQ(Verify({"--key", Path("key.pub"), "--json"}).json()["statement"]["read_off_the_data"], (Json{"l", "n"}));
  ASSERT_EQ(Show({"--html", Path("page.html")}).exit_code, 0);
  EXPECT_THAT(Read("page.html"), HasSubstr("<th scope=\"row\">Read off the data</th><td>l, n</td>"));
  EXPECT_THAT(Show({}).out, HasSubstr("\n  Read off the data: l, n\n"));
}

TEST_F(CertificateCommandsTest, ShowsThatNothingIsPromisedAboutPublicData) {
  Write("certificate.json", SignStatement(ExamplePublicStatement(), key_).value());
  const CommandRun run = Show({});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("What is guaranteed\n  Nothing. The owner declared this dataset public"));
  EXPECT_THAT(run.out, Not(HasSubstr("The population's budget")));
  EXPECT_THAT(run.out, Not(HasSubstr("VERIFIED")));
}

TEST_F(CertificateCommandsTest, WritesAPageThatNeedsNothingElse) {
  const CommandRun run = Show({"--html", Path("page.html")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string html = Read("page.html");
  EXPECT_EQ(html.rfind("<!DOCTYPE html>\n<html lang=\"en\">", 0), 0U);
  EXPECT_THAT(html, HasSubstr("<p class=\"verdict guaranteed\">VERIFIED: epsilon 1 at delta 3e-05"));
  EXPECT_THAT(html, HasSubstr("<td class=\"ok\">✓</td><th scope=\"row\">signature</th>"));
  for (const char* outside : {"<script", "<link", "<img", "src=", "href=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  EXPECT_EQ(Show({"--html", directory_}).exit_code, 2);
  EXPECT_EQ(Show({"--html", Path("missing/page.html")}).exit_code, 2);
}

TEST_F(CertificateCommandsTest, ThePageSaysWhatIsWrongAndTheExitCodeToo) {
  Write("model.npz", "another");
  const CommandRun run = Show({"--model", Path("model.npz"), "--html", Path("page.html")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(Read("page.html"), HasSubstr("<p class=\"verdict not-verified\">NOT VERIFIED"));
  EXPECT_THAT(Read("page.html"), HasSubstr("<td class=\"bad\">✗</td><th scope=\"row\">model.npz digest</th>"));
}

TEST_F(CertificateCommandsTest, WhatNobodyTrustedHasSignedIsNotShown) {
  Write("key.pub", SigningKey::Generate()->verifying_key().pem());
  const CommandRun run = Show({"--html", Path("page.html")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("FAIL signature: signed by a key that is not trusted here"));
  EXPECT_THAT(run.out, Not(HasSubstr("acme")));
  EXPECT_FALSE(std::filesystem::exists(Path("page.html")));
}

TEST_F(CertificateCommandsTest, ThePageEscapesWhatItShows) {
  Verification verification;
  verification.statement = ExampleStatement();
  verification.statement.build = "<script>alert('x') & \"y\"</script>";
  verification.checks = {{"<b>", true, "a & b"}};
  const std::string html = RenderHtml(MakeCertificateDocument(verification));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;) &amp; &quot;y&quot;&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST_F(CertificateCommandsTest, PrintsTheCertificateAsJson) {
  const CommandRun run = Show({"--json"});
  EXPECT_EQ(run.json()["passed"], true);
  EXPECT_EQ(run.json()["certificate"]["predicateType"], "urn:dpar:privacy-certificate:v1");
  EXPECT_EQ(run.json()["certificate"]["predicate"]["ledger"]["units_before"], 1234567);
}

TEST_F(CertificateCommandsTest, AskingAServerThatIsNotThereIsNoVerification) {
  const CommandRun run = Verify({"--ask-server", "--server", "127.0.0.1:1"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.out, Not(HasSubstr("VERIFIED")));
}

}  // namespace
}  // namespace dpar
