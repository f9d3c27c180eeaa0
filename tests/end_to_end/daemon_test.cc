// dpard as a program: how it starts, what it refuses, what it leaves on disk.
#include <google/protobuf/empty.pb.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/raw_call.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

CommandResult Dpard(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  std::vector<std::string> command = {BinaryPath("dpard")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command, environment, absl::Seconds(20));
}

unsigned Mode(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

class DaemonTest : public SharedServerTest {};

TEST_F(DaemonTest, HealthAnswersServing) {
  const auto context = MakeContext("");
  const auto answer = RawCall(server().MakeChannel(), "/grpc.health.v1.Health/Check", "", *context);
  ASSERT_THAT(answer.status, IsOk());
  // HealthCheckResponse: field 1, SERVING = 1.
  EXPECT_EQ(answer.value, "\x08\x01");
}

TEST_F(DaemonTest, TheHealthCommandAsksTheServerOfItsDataDirectory) {
  const CommandResult serving = Dpard({"health", "--data-dir", server().data_directory()});
  EXPECT_EQ(serving.exit_code, 0) << serving.err;
  EXPECT_EQ(serving.out, server().address() + " serves\n");

  const CommandResult elsewhere = Dpard({"health", "--data-dir", server().Scratch("nobody")});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.err, ::testing::HasSubstr("there is no address in " + server().Scratch("nobody/address")));
  EXPECT_FALSE(std::filesystem::exists(server().Scratch("nobody"))) << "it only looks";
}

TEST_F(DaemonTest, TheHealthCommandAsksOnLoopbackWhatListensEverywhereAndFailsWhereNothingDoes) {
  const auto probe = [](const std::string& address) {
    const std::string file = server().Scratch("written-address");
    std::ofstream(file) << address;
    return Dpard({"health", "--data-dir", server().data_directory(), "--address-file", file});
  };
  const std::string everywhere = "0.0.0.0" + server().address().substr(server().address().rfind(':'));
  const CommandResult serving = probe(everywhere);
  EXPECT_EQ(serving.exit_code, 0) << serving.err;
  EXPECT_EQ(serving.out, everywhere + " serves\n");

  // HTTP answers there, and no gRPC.
  for (const std::string& address : {std::string("0.0.0.0:1"), server().metrics_address()}) {
    const CommandResult dead = probe(address);
    EXPECT_EQ(dead.exit_code, 1) << address;
    EXPECT_EQ(dead.out, "");
    EXPECT_THAT(dead.err, ::testing::HasSubstr("127.0.0.1:"));
    EXPECT_THAT(dead.err, ::testing::HasSubstr("does not answer"));
  }
}

TEST_F(DaemonTest, APlaintextConnectionFails) {
  const Client plain(grpc::CreateChannel(server().address(), grpc::InsecureChannelCredentials()),
                     server().operator_token());
  const auto context = MakeContext("", absl::Seconds(5));
  v1::ServerInfo info;
  const grpc::Status status = plain.stub<v1::ServerService::Stub>().GetServerInfo(context.get(), {}, &info);
  EXPECT_THAT(status.error_code(), ::testing::AnyOf(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::DEADLINE_EXCEEDED))
      << status.error_message();
}

TEST_F(DaemonTest, AClientThatTrustsAnotherAuthorityRefusesTheServer) {
  TestServer other;
  ASSERT_TRUE(other.Start());
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = ReadFile(other.ca_file());
  const Client misled(grpc::CreateChannel(server().address(), grpc::SslCredentials(tls)), server().operator_token());
  const auto context = MakeContext(server().operator_token(), absl::Seconds(5));
  v1::ServerInfo info;
  EXPECT_FALSE(misled.stub<v1::ServerService::Stub>().GetServerInfo(context.get(), {}, &info).ok());
}

TEST_F(DaemonTest, InfoNamesTheVersionTheMethodAndTheSigningKey) {
  const Client operating = server().Operator();
  v1::GetServerInfoRequest ask;
  const auto info = operating.Call(&v1::ServerService::Stub::GetServerInfo, ask);
  ASSERT_THAT(info.status, IsOk());
  EXPECT_THAT(info.value.methods(),
              ::testing::ElementsAre("features", "dpar-em0", "dpar-em1", "dpar-gm", "gap", "sage"));
  EXPECT_THAT(info.value.version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(info.value.limits().default_cap_epsilon(), 8);
  EXPECT_GE(info.value.devices_size(), 1);
  v1::ListSigningKeysRequest list;
  const auto keys = operating.Call(&v1::ServerService::Stub::ListSigningKeys, list);
  ASSERT_EQ(keys.value.keys_size(), 1);
  EXPECT_EQ(keys.value.keys(0).public_key_pem(), ReadFile(server().data_directory() + "/keys/signing.pub"));
}

TEST_F(DaemonTest, SecretFilesAreReadableByTheirOwnerOnly) {
  const std::string data = server().data_directory();
  for (const char* file : {"/tls/ca.key", "/tls/server.key", "/keys/signing.key", "/operator.token", "/dpar.sqlite"}) {
    EXPECT_EQ(Mode(data + file) & 0077U, 0U) << file;
  }
  for (const char* file : {"/tls/ca.key", "/tls/server.key", "/keys/signing.key", "/operator.token"}) {
    EXPECT_EQ(Mode(data + file), 0600U) << file;
  }
  EXPECT_EQ(Mode(data) & 0077U, 0U);
}

TEST_F(DaemonTest, ASecondServerOnTheSameDirectoryRefusesAndTheFirstGoesOn) {
  const CommandResult second =
      Dpard({"--data-dir", server().data_directory(), "--listen", "127.0.0.1:0", "--page-listen", "127.0.0.1:0"});
  EXPECT_GT(second.exit_code, 0);
  EXPECT_LT(second.exit_code, 128);
  EXPECT_THAT(second.err + second.out, ::testing::HasSubstr(server().data_directory()));
  v1::GetServerInfoRequest ask;
  EXPECT_THAT(server().Operator().Call(&v1::ServerService::Stub::GetServerInfo, ask).status, IsOk());
  EXPECT_NE(ReadFile(server().data_directory() + "/address"), "");
}

TEST_F(DaemonTest, TheCommandLineSaysUnavailableWithExitCodeFive) {
  TestServer stopped;
  ASSERT_TRUE(stopped.Start());
  const std::string token = stopped.operator_token();
  EXPECT_EQ(stopped.Terminate(), std::optional<int>(0));
  const CommandResult result = stopped.Dpar(token, {"tenant", "list"});
  EXPECT_EQ(result.exit_code, 5) << result.err;
}

TEST(DaemonFlagsTest, ABadValueStopsItWithTheReasonAndExitCodeTwo) {
  const TemporaryDirectory directory;
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"--listen", "nonsense"},
      {"--listen", "127.0.0.1:70000"},
      {"--log-level", "loud"},
      {"--log-format", "xml"},
      {"--metrics-listen", "nonsense"},
      {"--page-listen", "nonsense"},
      {"--default-cap-epsilon", "-1"},
      {"--default-cap-epsilon", "x"},
      {"--device", "abacus"},
      {"--max-upload-bytes", "a lot"},
      {"--max-nodes", "0"},
      {"--config", directory.File("absent")},
      {"--default-cap-epsilon", "1000"},
  };
  for (const auto& [flag, value] : bad) {
    const CommandResult result = Dpard({"--data-dir", directory.File("data"), flag, value});
    EXPECT_EQ(result.exit_code, 2) << flag << " " << value << "\n" << result.err;
    EXPECT_THAT(result.err, ::testing::HasSubstr(flag.substr(2))) << flag << " " << value;
  }
  EXPECT_EQ(Dpard({"--no-such-flag"}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(directory.File("data")));
}

TEST(DaemonFlagsTest, FlagsGoBeforeTheEnvironmentAndThatBeforeTheFile) {
  const TemporaryDirectory directory;
  const std::string config = directory.File("dpard.conf");
  WriteFile(config, "default-cap-epsilon = nonsense-in-file\n");
  const std::vector<std::string> base = {"init", "--data-dir", directory.File("data"), "--config", config};
  const CommandResult from_file = Dpard(base);
  EXPECT_EQ(from_file.exit_code, 2) << from_file.err;
  const CommandResult from_environment = Dpard(base, {{"DPARD_DEFAULT_CAP_EPSILON", "4"}});
  EXPECT_EQ(from_environment.exit_code, 0) << from_environment.err;
  const CommandResult bad_environment = Dpard(base, {{"DPARD_DEFAULT_CAP_EPSILON", "nonsense"}});
  EXPECT_EQ(bad_environment.exit_code, 2);
  std::vector<std::string> with_flag = base;
  with_flag.insert(with_flag.end(), {"--default-cap-epsilon", "4"});
  EXPECT_EQ(Dpard(with_flag, {{"DPARD_DEFAULT_CAP_EPSILON", "nonsense"}}).exit_code, 0);
}

TEST(DaemonFlagsTest, HelpNamesEveryFlagOfTheContract) {
  const CommandResult help = Dpard({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* flag :
       {"--data-dir", "--listen", "--config", "--log-level", "--log-format", "--metrics-listen", "--page-listen",
        "--audit-log", "--device", "--default-cap-epsilon", "--max-upload-bytes", "--max-nodes", "DPARD_"}) {
    EXPECT_THAT(help.out, ::testing::HasSubstr(flag));
  }
}

TEST(DaemonInitTest, InitMakesKeysSaysWhereAndASecondOneChangesNothing) {
  const TemporaryDirectory directory;
  const std::string data = directory.File("data");
  const std::vector<std::string> files = {"/tls/ca.pem",     "/tls/ca.key",       "/tls/server.pem",
                                          "/tls/server.key", "/keys/signing.key", "/keys/signing.pub",
                                          "/operator.token"};
  const CommandResult first = Dpard({"init", "--data-dir", data});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  std::vector<std::string> contents;
  for (const std::string& file : files) {
    contents.push_back(ReadFile(data + file));
    EXPECT_NE(contents.back(), "") << file;
  }
  for (const char* file : {"/tls/ca.pem", "/keys/signing.pub", "/operator.token"}) {
    EXPECT_THAT(first.out, ::testing::HasSubstr(data + file));
  }
  EXPECT_THAT(first.out + first.err, ::testing::Not(::testing::HasSubstr(contents.back().substr(0, 40))));

  const CommandResult second = Dpard({"init", "--data-dir", data});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(ReadFile(data + files[i]), contents[i]) << files[i];
}

TEST(DaemonStopTest, ManySignalsStopItAsCleanlyAsOne) {
  TestServer server;
  ASSERT_TRUE(server.Start());
  for (int i = 0; i < 200; ++i) server.Signal(i % 2 == 0 ? SIGTERM : SIGINT);
  EXPECT_EQ(server.Terminate(), std::optional<int>(0));
  EXPECT_FALSE(std::filesystem::exists(server.data_directory() + "/address"));
  EXPECT_THAT(server.log(), ::testing::HasSubstr("stopping on "));
}

TEST(DaemonStopTest, ASignalDuringTheStartStopsItCleanly) {
  const TemporaryDirectory directory;
  const std::string data = directory.File("data");
  Process dpard({BinaryPath("dpard"), "--data-dir", data, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                 "--page-listen", "127.0.0.1:0"},
                {}, directory.File("log"), directory.File("log"));
  // The lock is the first file it makes, long before it listens.
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!std::filesystem::exists(data + "/lock") && absl::Now() < deadline) dpard.Wait(absl::Milliseconds(1));
  dpard.Signal(SIGTERM);
  EXPECT_EQ(dpard.Wait(absl::Seconds(20)), std::optional<int>(0)) << ReadFile(directory.File("log"));
}

TEST(DaemonLimitsTest, AFlagLowersALimitAndTheServerKeepsToIt) {
  TestServer server({"--max-nodes", "100", "--default-cap-epsilon", "2"});
  ASSERT_TRUE(server.Start());
  const TenantAccess tenant = server.NewTenant();
  const Client owner = server.Owner(tenant);
  const auto answer =
      owner.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant.name, "bytes", {101, 30, 3}));
  EXPECT_THAT(answer.status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_EQ(ErrorMetadata(answer.status, "maximum"), "100");
  const std::string dataset =
      UploadGraph(owner, tenant.name, MakeGraph(800, {.nodes = 100, .classes = 3, .features = 30}));
  EXPECT_EQ(GetBudget(owner, dataset).cap_epsilon(), 2);
}

}  // namespace
}  // namespace dpar::e2e
