#include "client/sdk/connect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/sdk/profile.h"
#include "core/error.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----";
constexpr const char* kKeyPem = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----";

std::string ReasonOf(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

class ConnectTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(::testing::TempDir(), "/connect_test.", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    variables_["XDG_CONFIG_HOME"] = directory_ + "/config";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string File(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ + "/" + name) << content;
    return directory_ + "/" + name;
  }

  [[nodiscard]] Variables variables() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  [[nodiscard]] absl::StatusOr<ConnectOptions> Resolve(const ConnectSettings& settings = {}) const {
    return ResolveConnection(settings, variables());
  }
  [[nodiscard]] ProfileStore store() const { return ProfileStore(variables()); }

  void SaveCurrent(const std::string& name, const Profile& profile) const {
    ASSERT_EQ(store().Save(name, profile), absl::OkStatus());
    ASSERT_EQ(store().Use(name), absl::OkStatus());
  }

  static int ModeOf(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? static_cast<int>(status.st_mode & 0777U) : -1;
  }

  std::string directory_;
  std::map<std::string, std::string> variables_;
};

TEST_F(ConnectTest, ArgumentsComeBeforeTheEnvironmentAndThatBeforeTheProfile) {
  SaveCurrent("home", {.server = "home:1", .ca_pem = kPem, .token = "dpar_home_1"});
  auto options = Resolve();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server, "home:1");
  EXPECT_EQ(options->ca_pem, kPem);
  EXPECT_EQ(options->token, "dpar_home_1");

  variables_["DPAR_SERVER"] = "env:2";
  variables_["DPAR_CA"] = File("env.pem", absl::StrCat(kPem, "env"));
  variables_["DPAR_TOKEN"] = "dpar_env_2";
  options = Resolve();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server, "env:2");
  EXPECT_THAT(options->ca_pem, HasSubstr("env"));
  EXPECT_EQ(options->token, "dpar_env_2");

  options = Resolve({.server = "flag:3",
                     .ca = File("flag.pem", absl::StrCat(kPem, "flag")),
                     .token_file = File("flag.token", " dpar_flag_3\n")});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server, "flag:3");
  EXPECT_THAT(options->ca_pem, HasSubstr("flag"));
  EXPECT_EQ(options->token, "dpar_flag_3");
}

TEST_F(ConnectTest, AProfileThatIsNamedAsAnArgumentComesBeforeTheEnvironment) {
  ASSERT_EQ(store().Save("work", {.server = "work:1", .ca_pem = kPem, .token = "dpar_work_1"}), absl::OkStatus());
  variables_["DPAR_SERVER"] = "env:2";
  variables_["DPAR_TOKEN"] = "dpar_env_2";
  const auto options = Resolve({.profile = "work"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server, "work:1");
  EXPECT_EQ(options->token, "dpar_work_1");
}

TEST_F(ConnectTest, AProfilesTokenIsNeverSentToAnotherServer) {
  SaveCurrent("home", {.server = "home:1", .ca_pem = kPem, .token = "dpar_home_1"});
  variables_["DPAR_CA"] = File("ca.pem", kPem);
  const auto options = Resolve({.server = "elsewhere:2"});
  EXPECT_EQ(options.status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(ReasonOf(options.status()), "TOKEN_MISSING");
}

TEST_F(ConnectTest, WithoutAnythingTheAuthorityIsAskedForFirst) {
  const auto options = Resolve();
  EXPECT_EQ(ReasonOf(options.status()), "INVALID_FIELD");
  EXPECT_THAT(std::string(options.status().message()), HasSubstr("--ca"));
  EXPECT_EQ(ServerAddress({}, variables()), "127.0.0.1:7443");
}

TEST_F(ConnectTest, BadFilesAreNamed) {
  const std::string ca = File("ca.pem", kPem);
  EXPECT_THAT(std::string(Resolve({.ca = directory_ + "/none"}).status().message()), HasSubstr("none"));
  EXPECT_THAT(std::string(Resolve({.ca = File("no.pem", "no")}).status().message()), HasSubstr("no PEM certificate"));
  EXPECT_EQ(ReasonOf(Resolve({.ca = ca, .token_file = directory_ + "/none"}).status()), "TOKEN_MISSING");
  EXPECT_EQ(ReasonOf(Resolve({.ca = ca, .token_file = File("bad.token", "a b")}).status()), "TOKEN_MISSING");
  EXPECT_EQ(ReasonOf(Resolve({.ca = ca, .client_cert = ca}).status()), "INVALID_FIELD");
  EXPECT_THAT(std::string(Resolve({.ca = ca, .client_cert = ca, .client_key = ca}).status().message()),
              HasSubstr("no PEM private key"));
}

TEST_F(ConnectTest, AProfileOfAClientCertificateNeedsNoToken) {
  SaveCurrent("robot", {.server = "home:1", .ca_pem = kPem, .client_certificate_pem = kPem, .client_key_pem = kKeyPem});
  const auto options = Resolve();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->token, "");
  EXPECT_EQ(options->client_key_pem, kKeyPem);
}

TEST_F(ConnectTest, ProfilesAreTheUsersAlone) {
  SaveCurrent("home", {.server = "home:1", .ca_pem = kPem, .token = "dpar_home_1"});
  const std::string profile = directory_ + "/config/dpar/profiles/home";
  EXPECT_EQ(ModeOf(directory_ + "/config/dpar"), 0700);
  EXPECT_EQ(ModeOf(profile), 0700);
  for (const char* file : {"/server", "/ca.pem", "/token"}) {
    EXPECT_EQ(ModeOf(profile + file), 0600) << file;
  }
  EXPECT_FALSE(std::filesystem::exists(profile + "/client.pem"));
}

TEST_F(ConnectTest, ProfilesAreListedReplacedAndRemoved) {
  EXPECT_THAT(store().List(), IsEmpty());
  SaveCurrent("b", {.server = "b:1", .token = "dpar_b_1"});
  SaveCurrent("a", {.server = "a:1"});
  EXPECT_THAT(store().List(), ElementsAre("a", "b"));
  EXPECT_EQ(store().Current(), "a");
  // A login by certificate takes the place of one by token.
  ASSERT_EQ(store().Save("b", {.server = "b:2", .client_certificate_pem = kPem}), absl::OkStatus());
  EXPECT_EQ(store().Load("b")->server, "b:2");
  EXPECT_EQ(store().Load("b")->token, "");
  ASSERT_EQ(store().Remove("a"), absl::OkStatus());
  EXPECT_EQ(store().Current(), "");
  EXPECT_THAT(store().List(), ElementsAre("b"));
}

TEST_F(ConnectTest, AProfileThatWasReplacedHalfWayIsNone) {
  SaveCurrent("home", {.server = "home:1", .ca_pem = kPem, .token = "dpar_home_1"});
  // The key cannot be written where a directory stands: what comes before it is replaced by then.
  const std::string obstacle = store().directory() + "/profiles/home/client.key";
  std::filesystem::create_directories(obstacle);
  const Profile other = {.server = "other:1",
                         .ca_pem = kPem,
                         .token = "dpar_other_1",
                         .client_certificate_pem = kPem,
                         .client_key_pem = kKeyPem};
  EXPECT_EQ(store().Save("home", other).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store().Load("home").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(store().List(), IsEmpty());

  std::filesystem::remove(obstacle);
  ASSERT_EQ(store().Save("home", other), absl::OkStatus());
  const auto saved = store().Load("home");
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->server, "other:1");
  EXPECT_EQ(saved->token, "dpar_other_1");
}

TEST_F(ConnectTest, ProfilesThatAreNotThereAndNamesThatAreNoneAreRefused) {
  EXPECT_EQ(store().Load("gone").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().Use("gone").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().Remove("gone").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(store().Save("../up", {.server = "x:1"})), "INVALID_FIELD");
  EXPECT_EQ(ReasonOf(store().Load("../up").status()), "INVALID_FIELD");
  EXPECT_EQ(Resolve({.profile = "gone"}).status().code(), absl::StatusCode::kNotFound);
  variables_.clear();
  EXPECT_EQ(ReasonOf(store().Save("a", {.server = "x:1"})), "INVALID_FIELD");
}

}  // namespace
}  // namespace dpar
