#include "server/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/config_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string WriteFile(const std::string& text) {
    const std::string path = root_ + "/dpard.conf";
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<Invocation> Parse(const std::vector<std::string>& arguments) {
    return ParseInvocation(arguments, [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional<std::string>(found->second);
    });
  }
  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& field, const std::string& words) {
    const absl::Status status = Parse(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << ::testing::PrintToString(arguments);
    const auto info = GetErrorInfo(status);
    ASSERT_TRUE(info.has_value()) << ::testing::PrintToString(arguments);
    EXPECT_EQ(info->metadata().at("field"), field);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }

  std::string root_;
  std::map<std::string, std::string> environment_;
};

TEST_F(ConfigTest, AStoreIsAPostgresqlUriOrUnset) {
  EXPECT_EQ(Parse({}).value().config.store, "");
  EXPECT_EQ(Parse({"--store", "postgresql://db/dpar"}).value().config.store, "postgresql://db/dpar");
  ExpectRefused({"--store", "mysql://db/dpar"}, "store", "postgresql://");
  ExpectRefused({"--store", "dpar.sqlite"}, "store", "postgresql://");
}

TEST_F(ConfigTest, ThePasswordOfAStoreComesFromAFileOfOneLine) {
  const auto parse = [this](const std::string& text) {
    return Parse({"--store", "postgresql://dpar@db/dpar", "--store-password-file", WriteFile(text)});
  };
  EXPECT_EQ(parse("a b@:/?%\n").value().config.store_password, "a b@:/?%");
  EXPECT_EQ(parse("secret").value().config.store_password, "secret");
  EXPECT_EQ(Parse({"--store", "postgresql://db/dpar"}).value().config.store_password, "");
  environment_["DPARD_STORE_PASSWORD_FILE"] = WriteFile("from the environment\n");
  EXPECT_EQ(Parse({"--store", "postgresql://db/dpar"}).value().config.store_password, "from the environment");
  environment_.clear();
  for (const char* bad : {"", "\n", "one\ntwo\n", "\nsecret\n"}) {
    const absl::Status status = parse(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "store-password-file");
    EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("secret"))) << "it is for no log";
  }
  ExpectRefused({"--store", "postgresql://db/dpar", "--store-password-file", root_ + "/none"}, "store-password-file",
                "cannot be read");
  ExpectRefused({"--store-password-file", WriteFile("secret\n")}, "store-password-file", "--store");
}

TEST_F(ConfigTest, ACertificateFromFilesNeedsItsKey) {
  const Config config =
      Parse({"--tls-cert", "server.pem", "--tls-key", "server.key", "--client-ca", "clients.pem"}).value().config;
  EXPECT_EQ(config.tls_cert, "server.pem");
  EXPECT_EQ(config.tls_key, "server.key");
  EXPECT_EQ(config.client_ca, "clients.pem");
  ExpectRefused({"--tls-cert", "server.pem"}, "tls-cert", "tls-cert and tls-key are set together");
  environment_["DPARD_TLS_KEY"] = "server.key";
  ExpectRefused({}, "tls-cert", "tls-cert and tls-key are set together");
  EXPECT_TRUE(Parse({"--tls-cert", "server.pem"}).ok());
}

TEST_F(ConfigTest, FailuresThatAreAnsweredAtOnceAreAtLeastOne) {
  EXPECT_EQ(Parse({}).value().config.auth_failures_per_minute, 10);
  EXPECT_EQ(Parse({"--auth-failures-per-minute", "1"}).value().config.auth_failures_per_minute, 1);
  ExpectRefused({"--auth-failures-per-minute", "0"}, "auth-failures-per-minute", "1");
}

TEST_F(ConfigTest, AServerMayLeaveOutOneOfItsPartsButNotBoth) {
  EXPECT_EQ(Parse({}).value().config.parts, Config::Parts::kAll);
  EXPECT_EQ(Parse({"--no-worker"}).value().config.parts, Config::Parts::kNoWorker);
  EXPECT_EQ(Parse({"--worker-only"}).value().config.parts, Config::Parts::kWorkerOnly);
  ExpectRefused({"--no-worker", "--worker-only"}, "command line", "give one of them");
}

TEST_F(ConfigTest, JobsGetMostOfTheMemoryUnlessToldOtherwise) {
  EXPECT_GT(Parse({}).value().config.limits.max_job_bytes, 0);
  EXPECT_EQ(Parse({"--max-job-bytes", "12345"}).value().config.limits.max_job_bytes, 12345);
  ExpectRefused({"--max-job-bytes", "0"}, "max-job-bytes", "1");
  ExpectRefused({"--lease-seconds", "0"}, "lease-seconds", "1");
  ExpectRefused({"--concurrent-jobs", "-1"}, "concurrent-jobs", "0");
}

TEST_F(ConfigTest, WithoutAnythingTheDefaultsHold) {
  const Config config = Parse({}).value().config;
  EXPECT_EQ(config.command, Config::Command::kServe);
  EXPECT_EQ(config.data_dir, "./dpar-data");
  EXPECT_EQ(config.listen, "127.0.0.1:7443");
  EXPECT_EQ(config.log_level, "info");
  EXPECT_EQ(config.log_format, "text");
  EXPECT_EQ(config.metrics_listen, "127.0.0.1:7480");
  EXPECT_EQ(config.page_listen, "127.0.0.1:7481");
  EXPECT_EQ(config.audit_log, "");
  EXPECT_EQ(config.device, "auto");
  EXPECT_TRUE(config.tls_names.empty());
  EXPECT_EQ(config.limits.default_cap_epsilon, 8);
  EXPECT_EQ(config.limits.max_attempts, 3);
}

TEST_F(ConfigTest, TheCommandComesBeforeOrAfterTheFlags) {
  EXPECT_EQ(Parse({"init"}).value().config.command, Config::Command::kInit);
  EXPECT_EQ(Parse({"serve"}).value().config.command, Config::Command::kServe);
  EXPECT_EQ(Parse({"check"}).value().config.command, Config::Command::kCheck);
  EXPECT_EQ(Parse({"health"}).value().config.command, Config::Command::kHealth);
  const Config after = Parse({"init", "--data-dir", "/d"}).value().config;
  EXPECT_EQ(after.command, Config::Command::kInit);
  EXPECT_EQ(after.data_dir, "/d");
  const Config before = Parse({"--data-dir", "/d", "init"}).value().config;
  EXPECT_EQ(before.command, Config::Command::kInit);
  EXPECT_EQ(before.data_dir, "/d");
}

TEST_F(ConfigTest, AFlagGoesBeforeTheEnvironmentAndThatBeforeTheFile) {
  const std::string file = WriteFile("listen = 127.0.0.1:1\nmax-nodes = 1\nmax-edges = 1\n");
  environment_ = {{"DPARD_LISTEN", "127.0.0.1:2"}, {"DPARD_MAX_NODES", "2"}};
  const Config config = Parse({"--config", file, "--listen", "127.0.0.1:3"}).value().config;
  EXPECT_EQ(config.listen, "127.0.0.1:3");
  EXPECT_EQ(config.limits.max_nodes, 2);
  EXPECT_EQ(config.limits.max_edges, 1);
  EXPECT_EQ(config.limits.max_features, Limits().max_features);
}

TEST_F(ConfigTest, TheFileCanBeNamedByTheEnvironment) {
  environment_ = {{"DPARD_CONFIG", WriteFile("# comment\n\n  log-level=debug  \n")}};
  EXPECT_EQ(Parse({}).value().config.log_level, "debug");
}

TEST_F(ConfigTest, WhatOperatorsLookAtCanBeSetAndHttpTurnedOff) {
  const Config config = Parse({"--log-format", "json", "--metrics-listen", "[::1]:0", "--page-listen", "[::1]:1",
                               "--audit-log", "/var/log/a"})
                            .value()
                            .config;
  EXPECT_EQ(config.log_format, "json");
  EXPECT_EQ(config.metrics_listen, "[::1]:0");
  EXPECT_EQ(config.page_listen, "[::1]:1");
  EXPECT_EQ(config.audit_log, "/var/log/a");
  EXPECT_EQ(Parse({"--metrics-listen", ""}).value().config.metrics_listen, "");
  environment_ = {{"DPARD_PAGE_LISTEN", ""}};
  EXPECT_EQ(Parse({}).value().config.page_listen, "");
  ExpectRefused({"--metrics-listen", "7480"}, "metrics-listen", "metrics-listen must be HOST:PORT");
  ExpectRefused({"--page-listen", "127.0.0.1:70000"}, "page-listen", "65535");
  ExpectRefused({"--log-format", "xml"}, "log-format", "text or json, got 'xml'");
}

TEST_F(ConfigTest, EveryLimitCanBeSet) {
  const Config config =
      Parse({"--max-upload-bytes",    "1",   "--max-chunk-bytes",  "2",  "--max-nodes",           "3",
             "--max-features",        "4",   "--max-classes",      "5",  "--max-edges",           "6",
             "--max-feature-entries", "7",   "--max-datasets",     "8",  "--max-open-uploads",    "9",
             "--max-queued-jobs",     "10",  "--max-streams",      "11", "--max-attempts",        "12",
             "--default-cap-epsilon", "2.5", "--max-watches",      "13", "--max-tokens",          "14",
             "--max-tenants",         "15",  "--max-idle-seconds", "16", "--request-memory-days", "17",
             "--upload-life-days",    "18"})
          .value()
          .config;
  EXPECT_EQ(config.limits.max_upload_bytes, 1);
  EXPECT_EQ(config.limits.max_chunk_bytes, 2);
  EXPECT_EQ(config.limits.max_nodes, 3);
  EXPECT_EQ(config.limits.max_features, 4);
  EXPECT_EQ(config.limits.max_classes, 5);
  EXPECT_EQ(config.limits.max_edges, 6);
  EXPECT_EQ(config.limits.max_feature_entries, 7);
  EXPECT_EQ(config.limits.max_datasets, 8);
  EXPECT_EQ(config.limits.max_open_uploads, 9);
  EXPECT_EQ(config.limits.max_queued_jobs, 10);
  EXPECT_EQ(config.limits.max_streams, 11);
  EXPECT_EQ(config.limits.max_attempts, 12);
  EXPECT_EQ(config.limits.default_cap_epsilon, 2.5);
  EXPECT_EQ(config.limits.max_watches, 13);
  EXPECT_EQ(config.limits.max_tokens, 14);
  EXPECT_EQ(config.limits.max_tenants, 15);
  EXPECT_EQ(config.limits.max_idle_seconds, 16);
  EXPECT_EQ(config.limits.request_memory_days, 17);
  EXPECT_EQ(config.limits.upload_life_days, 18);
}

TEST_F(ConfigTest, NamesForTheCertificateAreRepeatedOrListed) {
  EXPECT_THAT(Parse({"--tls-name", "a.example", "--tls-name", "10.0.0.1"}).value().config.tls_names,
              ElementsAre("a.example", "10.0.0.1"));
  environment_ = {{"DPARD_TLS_NAME", "a.example, b.example"}};
  EXPECT_THAT(Parse({}).value().config.tls_names, ElementsAre("a.example", "b.example"));
}

TEST_F(ConfigTest, HelpShowsEveryFlagItsVariableAndItsDefault) {
  const std::string help = Parse({"--help"}).value().print.value();
  for (const std::string name : {"config",
                                 "data-dir",
                                 "listen",
                                 "log-level",
                                 "device",
                                 "tls-name",
                                 "default-cap-epsilon",
                                 "max-upload-bytes",
                                 "max-chunk-bytes",
                                 "max-nodes",
                                 "max-features",
                                 "max-classes",
                                 "max-edges",
                                 "max-feature-entries",
                                 "max-datasets",
                                 "max-open-uploads",
                                 "max-queued-jobs",
                                 "max-streams",
                                 "max-attempts",
                                 "max-watches",
                                 "max-tokens",
                                 "max-tenants",
                                 "max-idle-seconds",
                                 "request-memory-days",
                                 "upload-life-days"}) {
    EXPECT_THAT(help, HasSubstr("--" + name));
  }
  EXPECT_THAT(help, HasSubstr("DPARD_DATA_DIR"));
  EXPECT_THAT(help, HasSubstr("127.0.0.1:7443"));
  EXPECT_THAT(help, HasSubstr("init"));
  EXPECT_THAT(help, HasSubstr("check"));
  EXPECT_THAT(help, HasSubstr("health"));
  EXPECT_THAT(help, HasSubstr("--store-password-file"));
}

TEST_F(ConfigTest, KeyCommandsTakeTheirArgumentsAndThoseOfEveryCommand) {
  EXPECT_EQ(Parse({"keys", "list"}).value().config.command, Config::Command::kListKeys);
  EXPECT_EQ(Parse({"keys", "print"}).value().config.command, Config::Command::kPrintKeys);
  const Config rotate = Parse({"keys", "rotate", "--data-dir", "/d"}).value().config;
  EXPECT_EQ(rotate.command, Config::Command::kRotateKey);
  EXPECT_EQ(rotate.data_dir, "/d");
  const Config revoke =
      Parse({"--data-dir", "/d", "keys", "revoke", "0123abcd", "--reason", "two words"}).value().config;
  EXPECT_EQ(revoke.command, Config::Command::kRevokeKey);
  EXPECT_EQ(revoke.key_id, "0123abcd");
  EXPECT_EQ(revoke.reason, "two words");
  EXPECT_EQ(revoke.data_dir, "/d");
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"keys"},
                                             {"keys", "burn"},
                                             {"keys", "revoke"},
                                             {"keys", "revoke", "0123abcd"},
                                             {"keys", "revoke", "--reason", "why"},
                                             {"keys", "list", "rotate"},
                                             {"rotate"}}) {
    EXPECT_EQ(Parse(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad.back();
  }
}

TEST_F(ConfigTest, VersionIsPrinted) {
  EXPECT_EQ(Parse({"--version"}).value().print.value(), std::string("dpard ") + DPAR_VERSION + "\n");
}

TEST_F(ConfigTest, ABadValueIsRefusedWithItsSourceAndWhatIsAllowed) {
  ExpectRefused({"--listen", "nowhere"}, "listen", "--listen: listen must be HOST:PORT");
  ExpectRefused({"--log-level", "loud"}, "log-level", "trace, debug, info, warn or error, got 'loud'");
  ExpectRefused({"--device", "tpu"}, "device", "device must be auto, cpu, cuda or cuda:i, got 'tpu'");
  ExpectRefused({"--device", "cuda:x"}, "device", "got 'cuda:x'");
  ExpectRefused({"--data-dir", ""}, "data-dir", "must not be empty");
  ExpectRefused({"--tls-name", "a b"}, "tls-name", "must be a DNS name or an IP address, got 'a b'");
  ExpectRefused({"--max-nodes", "many"}, "max-nodes", "'many' is not a whole number");
  ExpectRefused({"--max-nodes", "1.5"}, "max-nodes", "'1.5' is not a whole number");
  ExpectRefused({"--max-nodes", "0"}, "max-nodes", "must be from 1 to 2147483647, got 0");
  ExpectRefused({"--max-nodes", "2147483648"}, "max-nodes", "got 2147483648");
  ExpectRefused({"--max-classes", "1"}, "max-classes", "must be from 2 to");
  ExpectRefused({"--max-chunk-bytes", "67108865"}, "max-chunk-bytes", "must be from 1 to 67108864");
  ExpectRefused({"--max-attempts", "101"}, "max-attempts", "must be from 1 to 100");
  ExpectRefused({"--default-cap-epsilon", "0"}, "default-cap-epsilon", "must be finite and above 0");
  ExpectRefused({"--default-cap-epsilon", "nan"}, "default-cap-epsilon", "must be finite and above 0");
  ExpectRefused({"--default-cap-epsilon", "101"}, "default-cap-epsilon", "must be from 0 to 100");
  ExpectRefused({"--default-cap-epsilon", "x"}, "default-cap-epsilon", "'x' is not a number");
  for (const std::string limit : {"max-upload-bytes", "max-features", "max-edges", "max-feature-entries",
                                  "max-datasets", "max-open-uploads", "max-queued-jobs", "max-streams"}) {
    ExpectRefused({"--" + limit, "-1"}, limit, "must be from 1 to");
  }
}

TEST_F(ConfigTest, ABadValueOfTheEnvironmentOrTheFileIsRefusedToo) {
  ExpectRefused({"--config", WriteFile("max-nodes = x\n")}, "max-nodes", root_ + "/dpard.conf line 1, max-nodes: 'x'");
  environment_ = {{"DPARD_MAX_NODES", "y"}};
  ExpectRefused({}, "max-nodes", "DPARD_MAX_NODES: 'y' is not a whole number");
}

TEST_F(ConfigTest, ABadFileIsRefusedWithTheLine) {
  ExpectRefused({"--config", root_ + "/none"}, "config", "cannot read the configuration file");
  ExpectRefused({"--config", WriteFile("max-nodes = 1\nwhat\n")}, "config", "line 2: expected 'key = value'");
  ExpectRefused({"--config", WriteFile("max-knots = 1\n")}, "max-knots", "line 1: there is no setting 'max-knots'");
  ExpectRefused({"--config", WriteFile("max-nodes = 1\nmax-nodes = 2\n")}, "max-nodes", "line 2: 'max-nodes' is set");
}

TEST_F(ConfigTest, UnknownWordsOnTheCommandLineAreRefused) {
  ExpectRefused({"--colour"}, "command line", "--colour");
  ExpectRefused({"start"}, "command line", "start");
  ExpectRefused({"init", "serve"}, "command line", "--help");
  ExpectRefused({"check", "init"}, "command line", "--help");
  ExpectRefused({"--max-nodes"}, "command line", "--max-nodes");
  ExpectRefused({"--max-nodes", "1", "--max-nodes", "2"}, "command line", "At Most 1 required but received 2");
}

TEST_F(ConfigTest, CommandsAboutTheStoreTakeTheirArguments) {
  const Config backup = Parse({"backup", "/b", "--data-dir", "/d"}).value().config;
  EXPECT_EQ(backup.command, Config::Command::kBackup);
  EXPECT_EQ(backup.place, "/b");
  EXPECT_EQ(backup.data_dir, "/d");
  const Config restore = Parse({"restore", "/b", "--replace"}).value().config;
  EXPECT_EQ(restore.command, Config::Command::kRestore);
  EXPECT_EQ(restore.place, "/b");
  EXPECT_TRUE(restore.replace);
  EXPECT_FALSE(Parse({"restore", "/b"}).value().config.replace);
  const Config thaw = Parse({"thaw", "tenants/a/populations/d", "--reason", "two words"}).value().config;
  EXPECT_EQ(thaw.command, Config::Command::kThaw);
  EXPECT_EQ(thaw.population, "tenants/a/populations/d");
  EXPECT_EQ(thaw.reason, "two words");
  const Config adopt = Parse({"adopt-witness", "--reason", "two words", "--witness-dir", "/w"}).value().config;
  EXPECT_EQ(adopt.command, Config::Command::kAdoptWitness);
  EXPECT_EQ(adopt.reason, "two words");
  EXPECT_EQ(adopt.witness_dir, "/w");
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"backup"},
                                                                                     {"restore"},
                                                                                     {"thaw", "d"},
                                                                                     {"thaw", "--reason", "x"},
                                                                                     {"adopt-witness"},
                                                                                     {"backup", "a", "b"}}) {
    EXPECT_EQ(Parse(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong[0];
  }
}

TEST_F(ConfigTest, TheWitnessDirectoryIsBesideTheDataAndNeverInIt) {
  EXPECT_EQ(WitnessDirectory(Parse({"--data-dir", "/var/lib/dpar"}).value().config), "/var/lib/dpar.witness");
  EXPECT_EQ(WitnessDirectory(Parse({"--data-dir", "/var/lib/dpar//"}).value().config), "/var/lib/dpar.witness");
  EXPECT_EQ(WitnessDirectory(Parse({"--witness-dir", "/w"}).value().config), "/w");
  for (const std::string inside : {"/var/lib/dpar", "/var/lib/dpar/", "/var/lib/dpar/w", "/var/lib/x/../dpar/w"}) {
    const absl::Status status = Parse({"--data-dir", "/var/lib/dpar", "--witness-dir", inside}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << inside;
  }
  EXPECT_TRUE(Parse({"--data-dir", "/var/lib/dpar", "--witness-dir", "/var/lib/dpar2"}).ok());
  // Also where there is a directory, and where it is named from here.
  EXPECT_TRUE(Parse({"--data-dir", "/tmp"}).ok());
  EXPECT_TRUE(Parse({"--data-dir", "/tmp/"}).ok());
  EXPECT_TRUE(Parse({"--data-dir", "none", "--witness-dir", "/tmp"}).ok());
  EXPECT_EQ(Parse({"--data-dir", "/tmp/", "--witness-dir", "/tmp/w"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Parse({"--data-dir", ".", "--witness-dir", "./w"}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ListenAddressTest, HostsAndPortsAreTakenApart) {
  EXPECT_EQ(ParseListenAddress("listen", "localhost:0").value().host, "localhost");
  EXPECT_EQ(ParseListenAddress("listen", "localhost:0").value().port, 0);
  EXPECT_EQ(ParseListenAddress("listen", "[::1]:65535").value().host, "[::1]");
  EXPECT_EQ(ParseListenAddress("listen", "0.0.0.0:443").value().port, 443);
}

TEST(ListenAddressTest, AnythingElseIsRefused) {
  for (const std::string text : {"", "localhost", ":1", "localhost:", "localhost:x", "localhost:65536", "localhost:-1",
                                 "::1:80", "[::1:80", "::1]:80", "a b:1", "unix:/tmp/s:1", "[]:1"}) {
    EXPECT_EQ(ParseListenAddress("listen", text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace dpar
