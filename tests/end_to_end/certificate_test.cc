// Certificates that the real server made, in the hands of others: checked by a script that shares no code with it,
// against the schema, altered byte by byte, and across rotated and revoked keys.
#include "core/certificate/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/certificate/testing/example_statement.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// Debian's, whose modules come from Debian's packages; another python3 may be the first in PATH.
constexpr char kPython[] = "/usr/bin/python3";
constexpr absl::Duration kPatience = absl::Seconds(120);
constexpr int64_t kMaxDegree = 100;  // no graph here has such a node

bool HasModule(const std::string& module) {
  return RunCommand({kPython, "-c",
                     absl::StrCat("import importlib.util as u, sys; sys.exit(not u.find_spec('", module, "'))")},
                    {})
             .exit_code == 0;
}

// What somebody has who was given a model.
struct Released {
  std::string certificate;
  std::string weights;
  std::string script;
};

class CertificateTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    if (HasFatalFailure()) return;
    tenant_ = server().NewTenant();
  }

  // A small graph, so that the model is small too.
  std::string Upload(uint64_t seed, bool is_public = false, int64_t max_degree = 0) {
    const Graph graph = MakeGraph(seed, {.nodes = 300, .classes = 2, .features = 30});
    v1::OpenUploadRequest request = OpenRequest(tenant_.name, GraphBytes(graph), graph.sizes);
    request.set_is_public(is_public);
    if (max_degree > 0) request.set_max_degree(max_degree);
    const auto uploaded = UploadFile(server().Owner(tenant_), request, GraphBytes(graph));
    EXPECT_TRUE(uploaded.status.ok()) << uploaded.status.error_message();
    return uploaded.value.dataset().name();
  }
  static v1::CreateJobRequest Request(const std::string& dataset, double epsilon = 2) {
    v1::CreateJobRequest request = JobRequest(dataset, epsilon);
    request.mutable_spec()->set_method(v1::FEATURES);
    request.mutable_spec()->mutable_options()->set_steps(10);
    return request;
  }
  std::string Start(const v1::CreateJobRequest& request) {
    const auto job = CreateJob(server().Owner(tenant_), request);
    EXPECT_TRUE(job.status.ok()) << job.status.error_message();
    return job.value.name();
  }
  // The files of a job, once it has ended.
  Released Fetch(const std::string& job) {
    const Client owner = server().Owner(tenant_);
    EXPECT_EQ(WaitForJob(owner, job).state(), v1::Job::SUCCEEDED);
    v1::GetCertificateRequest request;
    request.set_name(job);
    const auto certificate = owner.Call(&v1::TrainingService::Stub::GetCertificate, request);
    EXPECT_TRUE(certificate.status.ok()) << certificate.status.error_message();
    const std::string id = job.substr(job.rfind('/') + 1);
    Released released;
    released.certificate = server().Scratch(absl::StrCat(tenant_.id, "-", id, ".json"));
    WriteFile(released.certificate, certificate.value.envelope());
    for (const auto& entry :
         fs::recursive_directory_iterator(absl::StrCat(server().data_directory(), "/jobs/", tenant_.id, "/", id))) {
      if (entry.path().filename() == "model.npz") released.weights = entry.path();
      if (entry.path().filename() == "model.pt") released.script = entry.path();
    }
    return released;
  }
  Released Train(const v1::CreateJobRequest& request) { return Fetch(Start(request)); }

  static std::string PublicKey() { return server().data_directory() + "/keys/signing.pub"; }
  static std::vector<KnownKey> Trusted() { return ParseKeyList(ReadFile(PublicKey())).value(); }
  CommandResult RunScript(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {
        kPython, absl::StrCat(std::getenv("DPAR_SOURCE_DIR"), "/tests/end_to_end/check_certificate.py")};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunCommand(command, {{"PYTHONDONTWRITEBYTECODE", "1"}}, kPatience);
  }
  CommandResult Dpar(const std::vector<std::string>& arguments) const {
    return server().Dpar(tenant_.owner_token, arguments);
  }
  static CommandResult Keys(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {BinaryPath("dpard"), "keys", "--data-dir", server().data_directory()});
    return RunCommand(arguments, {});
  }
  static Statement Opened(const Released& released) {
    return OpenSigned(ReadFile(released.certificate), Trusted()).value();
  }

  TenantAccess tenant_;
};

TEST_F(CertificateTest, AScriptThatSharesNoCodeAgrees) {
  if (!HasModule("cryptography")) GTEST_SKIP() << "missing: Debian's python3-cryptography";
  v1::CreateJobRequest request = Request(Upload(2000));
  request.mutable_spec()->mutable_evaluation()->set_held_out_share(0.25);
  request.mutable_spec()->mutable_evaluation()->set_budget_share(0.1);
  const Released released = Train(request);
  const CommandResult good = RunScript({released.certificate, PublicKey(), released.weights, released.script});
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  EXPECT_THAT(good.out, HasSubstr("recomputed, 2 stated"));

  const auto refused = [&](const std::string& envelope, const std::string& message) {
    const std::string path = server().Scratch("altered.json");
    WriteFile(path, envelope);
    const CommandResult result = RunScript({path, PublicKey(), released.weights});
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_THAT(result.err, HasSubstr("refused: ")) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  const std::string envelope = ReadFile(released.certificate);
  refused(envelope + "\n", "one form");
  refused(absl::StrCat("{\"payload\":\"\",", envelope.substr(1)), "repeated");
  std::string flipped = envelope;
  flipped[400] = flipped[400] == 'A' ? 'B' : 'A';
  refused(flipped, "signature does not hold");
  refused(SignPayload(StatementToJson(Opened(released)), SigningKey::Generate().value()), "another key");

  // The server's own key, in the hands of somebody who lies.
  const SigningKey key = SigningKey::FromPem(ReadFile(server().data_directory() + "/keys/signing.key")).value();
  Statement lie = Opened(released);
  lie.plan.set_epsilon(1.98);
  lie.accountant_epsilon = 1.98;
  RehashEntry(lie);
  refused(SignPayload(StatementToJson(lie), key), "epsilon is understated");
  lie = Opened(released);
  lie.plan.set_delta(0.3);
  RehashEntry(lie);
  refused(SignPayload(StatementToJson(lie), key), "not below 1/N");
  lie = Opened(released);
  lie.cap_delta = 0.3;
  refused(SignPayload(StatementToJson(lie), key), "not below 1/N");
  lie = Opened(released);
  lie.job += "0";
  refused(SignPayload(StatementToJson(lie), key), "another hash");
  lie = Opened(released);
  lie.max_degree = 70;
  refused(SignPayload(StatementToJson(lie), key), "forgets the dataset's promise");
  lie.cap_max_degree = 71;
  refused(SignPayload(StatementToJson(lie), key), "forgets the dataset's promise");
  lie = Opened(released);
  lie.bounds.edges = 0;
  refused(SignPayload(StatementToJson(lie), key), "a bound that is not listed as public");
  std::string unlisted = StatementToJson(Opened(released));
  absl::StrReplaceAll({{"\"entry_bound\":", "\"entry_bound\":1"}}, &unlisted);
  refused(SignPayload(unlisted, key), "a bound that is not listed as public");
  std::string without = StatementToJson(Opened(released));
  absl::StrReplaceAll({{",\"max_degree\":null", ""}}, &without);
  refused(SignPayload(without, key), "max_degree");

  const CommandResult model = RunScript({released.certificate, PublicKey(), released.weights, PublicKey()});
  EXPECT_EQ(model.exit_code, 1);
  EXPECT_THAT(model.err, HasSubstr("is another file"));
}

TEST_F(CertificateTest, FollowsItsSchemaAndMutantsDoNot) {
  if (!HasModule("jsonschema")) GTEST_SKIP() << "missing: Debian's python3-jsonschema";
  const std::string dataset = Upload(2001);
  v1::CreateJobRequest full = Request(dataset, 1);
  full.mutable_spec()->set_method(v1::DPAR_EM1);
  full.mutable_spec()->mutable_evaluation()->set_held_out_share(0.25);
  full.mutable_spec()->mutable_evaluation()->set_budget_share(0.1);
  v1::CreateJobRequest published = Request(dataset, 0.05);
  published.mutable_spec()->set_accountant(v1::AS_PUBLISHED);
  published.mutable_spec()->mutable_options()->set_shift(false);
  const std::string open = Upload(2002, /*is_public=*/true);
  v1::CreateJobRequest silent = Request(open, 0);
  silent.mutable_spec()->set_non_private(true);
  std::vector<std::string> command = {
      kPython, absl::StrCat(std::getenv("DPAR_SOURCE_DIR"), "/tests/end_to_end/check_certificate_schema.py"),
      absl::StrCat(std::getenv("DPAR_SOURCE_DIR"), "/docs/certificate.schema.json")};
  const std::string promised = Upload(2006, /*is_public=*/false, kMaxDegree);
  v1::CreateJobRequest gap = Request(promised, 1);
  gap.mutable_spec()->set_method(v1::GAP);
  for (const v1::CreateJobRequest& request :
       {full, published, Request(open), silent, gap, Request(promised), Request(Upload(2006), 0.5)}) {
    command.push_back(Train(request).certificate);
  }
  const CommandResult result = RunCommand(command, {{"PYTHONDONTWRITEBYTECODE", "1"}}, kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("7 certificates valid, "));
}

TEST_F(CertificateTest, OfAMethodWithoutAPromiseSaysThatTheCapIsAboutGraphsThatKeepTheDatasets) {
  const std::string plain = Upload(2007);
  const Statement before = Opened(Train(Request(plain, 0.5)));
  EXPECT_EQ(before.max_degree, 0);
  EXPECT_EQ(before.cap_max_degree, 0);
  const std::string promised = Upload(2007, /*is_public=*/false, kMaxDegree);
  const Released released = Train(Request(promised, 0.5));
  const Statement statement = Opened(released);
  EXPECT_EQ(statement.max_degree, kMaxDegree);
  EXPECT_EQ(statement.cap_max_degree, kMaxDegree);
  EXPECT_FALSE(statement.plan.has_max_degree());
  const CommandResult shown = Dpar({"certificate", "show", released.certificate, "--key", PublicKey()});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("degree promise D: 100"));
  EXPECT_THAT(shown.out, HasSubstr("smallest degree promise for this population: 100"));
  EXPECT_THAT(shown.out, HasSubstr("What the cap is about: all jobs charged to this population together"));
  EXPECT_THAT(shown.out, Not(HasSubstr("as long as no node has more")));
  // The same content has the same budget, under whichever name it is read.
  const Statement other = Opened(Train(Request(plain, 0.5)));
  EXPECT_EQ(other.max_degree, 0);
  EXPECT_EQ(other.cap_max_degree, kMaxDegree);
  const CommandResult budget = Dpar({"population", "show", plain});
  EXPECT_THAT(budget.out, HasSubstr("the cap is about graphs in which no node has more than 100 neighbours"));
  EXPECT_EQ(nlohmann::json::parse(Dpar({"population", "show", plain, "--json"}).out)["budget"]["max_degree"],
            kMaxDegree);

  v1::CreateJobRequest gap = Request(promised, 0.5);
  gap.mutable_spec()->set_method(v1::GAP);
  const Released under = Train(gap);
  const CommandResult verified =
      Dpar({"certificate", "verify", under.certificate, "--model", under.weights, "--key", PublicKey()});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr(", as long as no node has more than 100 neighbours"));
}

TEST_F(CertificateTest, SaysFirstThatNothingIsPromisedAboutPublicData) {
  const std::string open = Upload(2003, /*is_public=*/true);
  v1::CreateJobRequest silent = Request(open, 0);
  silent.mutable_spec()->set_non_private(true);
  for (const auto& [request, guarantee] :
       {std::pair(Request(open), "\"predicate\":{\"guarantee\":\"none: the dataset was declared public\""),
        std::pair(silent,
                  "\"predicate\":{\"guarantee\":\"none: the dataset was declared public, and the model was trained "
                  "without any noise\"")}) {
    const Released released = Train(request);
    EXPECT_THAT(StatementToJson(Opened(released)), HasSubstr(guarantee));
    const CommandResult shown =
        Dpar({"certificate", "show", released.certificate, "--key", PublicKey(), "--model", released.weights});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("What is guaranteed\n  Nothing."));
    EXPECT_THAT(shown.out, HasSubstr("AUTHENTIC, BUT NOT PRIVATE"));
  }
}

// Each byte of the envelope and of both files, one at a time.
TEST_F(CertificateTest, EveryFlippedByteIsRefused) {
  const Released released = Train(Request(Upload(2004)));
  const std::string envelope = ReadFile(released.certificate);
  const std::vector<KnownKey> trusted = Trusted();
  const auto passes = [&](const std::string& text, const std::vector<std::string>& files) {
    const auto verification = VerifyCertificate(text, trusted, files);
    return verification.ok() && verification->passed();
  };
  ASSERT_TRUE(passes(envelope, {released.weights, released.script}));
  size_t flipped = 0;
  const auto flip = [&](std::string& bytes, size_t i) {
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    ++flipped;
  };
  for (size_t i = 0; i < envelope.size(); ++i) {
    std::string altered = envelope;
    flip(altered, i);
    EXPECT_FALSE(passes(altered, {})) << "envelope, byte " << i;
  }
  for (const std::string& path : {released.weights, released.script}) {
    const std::string bytes = ReadFile(path);
    ASSERT_LT(bytes.size(), 20000U) << path;
    ASSERT_GT(bytes.size(), 100U) << path;
    // Many copies for one verification, each with another byte flipped, and each of them must be refused.
    constexpr size_t kCopies = 64;
    for (size_t first = 0; first < bytes.size(); first += kCopies) {
      std::vector<std::string> copies;
      for (size_t i = first; i < std::min(first + kCopies, bytes.size()); ++i) {
        std::string altered = bytes;
        flip(altered, i);
        copies.push_back(server().Scratch(absl::StrCat("altered-", i % kCopies, ".bin")));
        WriteFile(copies.back(), altered);
      }
      const Verification verification = VerifyCertificate(envelope, trusted, copies).value();
      const auto refused =
          std::count_if(verification.checks.begin(), verification.checks.end(),
                        [](const Check& check) { return check.name.ends_with(" digest") && !check.passed; });
      EXPECT_EQ(refused, static_cast<std::ptrdiff_t>(copies.size())) << path << ", from byte " << first;
    }
  }
  EXPECT_GT(flipped, 8000U);
}

TEST_F(CertificateTest, StatesWhatWasUsedOfTheBudgetBeforeAndAfter) {
  const std::string dataset = Upload(2005);
  const Statement first = Opened(Train(Request(dataset, 0.5)));
  const Statement second = Opened(Train(Request(dataset, 0.75)));
  EXPECT_EQ(first.units_before, 0);
  EXPECT_GT(first.units, 0);
  EXPECT_EQ(second.units_before, first.units);
  const v1::Budget budget = GetBudget(server().Owner(tenant_), dataset);
  EXPECT_EQ(second.units_before + second.units, budget.posted_units());
  EXPECT_EQ(second.cap_units, budget.cap_units());
  EXPECT_EQ(second.order, budget.order());
  EXPECT_THAT(second.build, HasSubstr("commit "));
}

TEST_F(CertificateTest, IsShownAsAPageThatNeedsNothingFromElsewhere) {
  const Released released = Train(Request(Upload(2006)));
  const std::string page = server().Scratch("page.html");
  const CommandResult shown = Dpar(
      {"certificate", "show", released.certificate, "--key", PublicKey(), "--model", released.weights, "--html", page});
  EXPECT_EQ(shown.exit_code, 0) << shown.out << shown.err;
  const std::string html = ReadFile(page);
  EXPECT_THAT(html, HasSubstr("VERIFIED: epsilon 2"));
  EXPECT_THAT(html, HasSubstr("What was not released"));
  for (const char* outside : {"<script", "<link", "<img", "src=", "href=", "@import", "url(", "http://", "https://"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  // What is not signed is not shown.
  WriteFile(server().Scratch("stranger.pub"), SigningKey::Generate()->verifying_key().pem());
  fs::remove(page);
  const CommandResult refused =
      Dpar({"certificate", "show", released.certificate, "--key", server().Scratch("stranger.pub"), "--html", page});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, HasSubstr("NOT VERIFIED"));
  EXPECT_THAT(refused.out, Not(HasSubstr("What is guaranteed")));
  EXPECT_FALSE(fs::exists(page));
}

// Its own server, because it changes the keys.
class KeyRotationTest : public CertificateTest {
 protected:
  static void SetUpTestSuite() { StartServer({}); }
  // The exit code of `dpar certificate verify` with these ways to trust a key.
  int Verify(const Released& released, std::vector<std::string> trust, std::string* out = nullptr) {
    trust.insert(trust.begin(), {"certificate", "verify", released.certificate, "--model", released.weights});
    const CommandResult result = Dpar(trust);
    if (out != nullptr) *out = result.out + result.err;
    return result.exit_code;
  }
  std::string KeyIdOf(const Released& released) const {
    return nlohmann::json::parse(ReadFile(released.certificate))["signatures"][0]["keyid"];
  }
};

TEST_F(KeyRotationTest, OldCertificatesStayValidUntilTheirKeyIsRevoked) {
  const std::string dataset = Upload(2100);
  const Released before = Train(Request(dataset, 0.5));
  const std::string first_key = KeyIdOf(before);
  const std::string old_public = server().Scratch("first.pub");
  fs::copy_file(PublicKey(), old_public);

  // Jobs run while the key is rotated; none is lost, and each is signed by a key that is listed.
  std::vector<std::string> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(Start(Request(dataset, 0.1)));
  const CommandResult rotated = Keys({"rotate"});
  EXPECT_EQ(rotated.exit_code, 0) << rotated.err;
  std::vector<Released> during;
  for (const std::string& job : jobs) during.push_back(Fetch(job));
  const Released after = Train(Request(dataset, 0.5));
  const std::string second_key = KeyIdOf(after);
  EXPECT_NE(second_key, first_key);
  EXPECT_THAT(rotated.out, HasSubstr(second_key));

  const std::string list = server().Scratch("trusted.pem");
  WriteFile(list, Keys({"print"}).out);
  const std::string directory = server().Scratch("trusted");
  fs::create_directory(directory);
  fs::copy_file(old_public, directory + "/first.pub");
  fs::copy_file(PublicKey(), directory + "/second.pub");
  const CommandResult served = Dpar({"certificate", "keys"});
  EXPECT_EQ(served.exit_code, 0) << served.err;
  EXPECT_EQ(served.out, ReadFile(list));
  std::vector<Released> all = during;
  all.push_back(before);
  all.push_back(after);
  for (const Released& released : all) {
    EXPECT_EQ(Verify(released, {"--key", list}), 0);
    EXPECT_EQ(Verify(released, {"--ask-server"}), 0);
  }
  std::string out;
  EXPECT_EQ(Verify(before, {"--key", directory}), 0);
  EXPECT_EQ(Verify(after, {"--key", directory, "--ask-server"}, &out), 0);
  EXPECT_THAT(out, HasSubstr("ledger chain: the server's ledger holds the entry"));
  EXPECT_EQ(Verify(before, {"--key", old_public}), 0);
  EXPECT_EQ(Verify(after, {"--key", old_public}), 1);
  EXPECT_EQ(Verify(before, {"--key", PublicKey()}), 1);

  EXPECT_EQ(Keys({"revoke", first_key.substr(0, 12), "--reason", "a backup was stolen"}).exit_code, 0);
  EXPECT_THAT(Keys({"list"}).out, HasSubstr("(a backup was stolen)"));
  WriteFile(list, Keys({"print"}).out);
  for (const std::vector<std::string>& trust : std::vector<std::vector<std::string>>{
           {"--key", list}, {"--ask-server"}, {"--key", old_public, "--ask-server"}}) {
    EXPECT_EQ(Verify(before, trust, &out), 1);
    EXPECT_THAT(out, HasSubstr("key: the key was revoked on "));
    EXPECT_THAT(out, HasSubstr("a backup was stolen; somebody else may have signed this"));
    EXPECT_THAT(out, HasSubstr("NOT VERIFIED"));
  }
  EXPECT_EQ(Verify(after, {"--key", list}), 0);
  const auto keys = server().Operator().Call(&v1::ServerService::Stub::ListSigningKeys, v1::ListSigningKeysRequest());
  ASSERT_EQ(keys.value.keys_size(), 2);
  EXPECT_EQ(keys.value.keys(0).key_id(), second_key);
  EXPECT_FALSE(keys.value.keys(0).has_retire_time());
  EXPECT_EQ(keys.value.keys(1).key_id(), first_key);
  EXPECT_TRUE(keys.value.keys(1).has_retire_time());
  EXPECT_EQ(keys.value.keys(1).revoke_reason(), "a backup was stolen");

  // The server itself still reads what it signed.
  const CommandResult checked = RunCommand({BinaryPath("dpard"), "check", "--data-dir", server().data_directory()}, {});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

TEST_F(KeyRotationTest, BadKeyCommandsAreRefusedAndChangeNothing) {
  const std::string list = Keys({"print"}).out;
  EXPECT_EQ(Keys({"revoke", std::string(64, '0')}).exit_code, 2);
  const CommandResult unknown = Keys({"revoke", std::string(64, '0'), "--reason", "why"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("no signing key has the id"));
  const CommandResult elsewhere =
      RunCommand({BinaryPath("dpard"), "keys", "rotate", "--data-dir", server().Scratch("nothing")}, {});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("dpard init"));
  EXPECT_EQ(Keys({"print"}).out, list);
}

}  // namespace
}  // namespace dpar::e2e
