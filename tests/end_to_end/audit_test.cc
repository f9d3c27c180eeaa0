// The audit log: who did what, refused calls too, and nothing else.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

std::vector<nlohmann::json> Lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(ReadFile(path));
  for (std::string line; std::getline(text, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    lines.push_back(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
  }
  return lines;
}

// action, resource, code, reason and note of every line.
std::vector<std::string> Summaries(const std::string& path) {
  std::vector<std::string> summaries;
  for (const nlohmann::json& line : Lines(path)) {
    const std::string note = line.value("note", "");
    summaries.push_back(absl::StrCat(line.value("action", ""), " ", line.value("resource", ""), " ",
                                     line.value("code", ""), " ", line.value("reason", ""),
                                     note.empty() ? "" : absl::StrCat(" (", note, ")")));
  }
  return summaries;
}

TEST(AuditTest, WhatChangesOrHandsOutSomethingIsWrittenWithWhoDidIt) {
  TestServer server;
  ASSERT_TRUE(server.Start());
  const std::string log = server.data_directory() + "/audit.log";
  const TenantAccess tenant = server.NewTenant();
  const Client owner = server.Owner(tenant);
  const Graph graph = MakeGraph(3);
  const std::string bytes = GraphBytes(graph);
  v1::OpenUploadRequest open = OpenRequest(tenant.name, bytes, graph.sizes);
  open.set_dataset_id("open-data");
  open.set_is_public(true);
  const auto uploaded = UploadFile(owner, open, bytes);
  ASSERT_THAT(uploaded.status, IsOk());
  v1::CreateJobRequest job = JobRequest(uploaded.value.dataset().name(), 1);
  job.mutable_spec()->mutable_options()->set_steps(2);
  job.set_validate_only(true);
  ASSERT_THAT(CreateJob(owner, job).status, IsOk());
  job.set_validate_only(false);
  const auto created = CreateJob(owner, job);
  ASSERT_THAT(created.status, IsOk());
  EXPECT_EQ(WaitForJob(owner, created.value.name()).state(), v1::Job::SUCCEEDED);
  v1::GetCertificateRequest certificate;
  certificate.set_name(created.value.name());
  EXPECT_THAT(owner.Call(&v1::TrainingService::Stub::GetCertificate, certificate).status, IsOk());
  v1::DeleteDatasetRequest deletion;
  deletion.set_name("tenants/somebody/datasets/else");
  EXPECT_FALSE(owner.Call(&v1::DatasetService::Stub::DeleteDataset, deletion).status.ok());
  deletion.set_name("no name: label 7");
  EXPECT_FALSE(server.MakeClient("").Call(&v1::DatasetService::Stub::DeleteDataset, deletion).status.ok());

  const std::vector<nlohmann::json> lines = Lines(log);
  ASSERT_GE(lines.size(), 5U);
  const std::string token = lines[1]["resource"];
  const std::string upload = lines[2]["resource"];
  EXPECT_TRUE(absl::StartsWith(token, absl::StrCat(tenant.name, "/tokens/"))) << token;
  EXPECT_TRUE(absl::StartsWith(upload, absl::StrCat(tenant.name, "/uploads/"))) << upload;
  EXPECT_THAT(Summaries(log),
              ::testing::ElementsAre(
                  absl::StrCat("OperatorService/CreateTenant ", tenant.name, " OK "),
                  absl::StrCat("OperatorService/CreateToken ", token, " OK "),
                  absl::StrCat("DatasetService/OpenUpload ", upload, " OK  (declared public)"),
                  absl::StrCat("DatasetService/WriteUpload ", upload, " OK "),
                  absl::StrCat("DatasetService/FinishUpload ", tenant.name, "/datasets/open-data OK  (public dataset)"),
                  absl::StrCat("TrainingService/CreateJob ", tenant.name, " OK  (dry run)"),
                  absl::StrCat("TrainingService/CreateJob ", created.value.name(), " OK "),
                  absl::StrCat("TrainingService/GetCertificate ", created.value.name(), " OK "),
                  "DatasetService/DeleteDataset tenants/somebody/datasets/else NOT_FOUND RESOURCE_NOT_FOUND",
                  "DatasetService/DeleteDataset (malformed) UNAUTHENTICATED TOKEN_MISSING"));
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string actor = lines[i]["actor"];
    EXPECT_EQ(absl::StartsWith(actor, "operator/tokens/"), i < 2) << lines[i];
    EXPECT_EQ(actor == token, i >= 2 && i + 1 < lines.size()) << lines[i];
    EXPECT_TRUE(absl::StartsWith(lines[i]["peer"].get<std::string>(), "ipv4:127.0.0.1:")) << lines[i];
    EXPECT_NE(lines[i]["request_id"], "");
    EXPECT_NE(lines[i]["time"], "");
  }
  EXPECT_EQ(lines.back()["actor"], "");
  struct stat status = {};
  ASSERT_EQ(stat(log.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(AuditTest, SighupOpensTheFileAgainAndTheServerGoesOn) {
  const TemporaryDirectory directory;
  const std::string log = directory.File("who-did-what");
  TestServer server({"--audit-log", log});
  ASSERT_TRUE(server.Start());
  server.NewTenant();
  EXPECT_EQ(Lines(log).size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(server.data_directory() + "/audit.log"));
  std::filesystem::rename(log, log + ".1");
  server.Signal(SIGHUP);
  const absl::Time deadline = absl::Now() + kPatience;
  while (!std::filesystem::exists(log) && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(10));
  ASSERT_TRUE(std::filesystem::exists(log));
  server.NewTenant();
  EXPECT_EQ(Lines(log + ".1").size(), 2U);
  EXPECT_EQ(Lines(log).size(), 2U);
  EXPECT_EQ(server.Terminate(), std::optional<int>(0));
}

TEST(AuditTest, AFileThatCannotBeOpenedStopsTheStart) {
  const TemporaryDirectory directory;
  const CommandResult result =
      RunCommand({BinaryPath("dpard"), "--data-dir", directory.File("data"), "--listen", "127.0.0.1:0",
                  "--metrics-listen", "127.0.0.1:0", "--page-listen", "", "--audit-log", directory.File("absent/file")},
                 {});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ::testing::HasSubstr("cannot open the audit log"));
}

// A call is answered also when nothing can be written about it: /dev/full takes no byte.
TEST(AuditTest, AFailedWriteLosesNoCallAndIsInTheLog) {
  TestServer server({"--audit-log", "/dev/full"});
  ASSERT_TRUE(server.Start());
  server.NewTenant();
  EXPECT_THAT(server.log(), ::testing::HasSubstr("fault method=OperatorService/CreateTenant code=UNAVAILABLE"));
  EXPECT_THAT(server.log(),
              ::testing::HasSubstr("cause=cannot write the audit log /dev/full: No space left on device"));
}

}  // namespace
}  // namespace dpar::e2e
