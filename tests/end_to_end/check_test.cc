// dpard check: what an operator learns of the files, beside a server that runs and without one.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/graph/sealed_format.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A whole report, with nothing wrong but what is said of the datasets.
::testing::Matcher<std::string> SaysOfDatasets(const std::string& lines) {
  return ::testing::AllOf(
      ::testing::StartsWith("schema: version "),
      HasSubstr(absl::StrCat("\n", lines,
                             "model files: 0 ok, 0 damaged or missing\nledgers: 2 ok, 0 broken\nkeys: 1 known, ")),
      ::testing::EndsWith(
          " signs\nmarks: 0 ok, 0 ahead of their ledgers or unreadable, 0 of populations that the store does not "
          "know; frozen: 0\n"));
}

constexpr char kOk[] = ": ok, 120 nodes, 30 features, 3 classes\n";

CommandResult Check(const std::string& data_directory) {
  return RunCommand({BinaryPath("dpard"), "check", "--data-dir", data_directory}, {}, absl::Seconds(20));
}

// Changes one byte in the middle of a section, in place.
void Damage(const std::string& path, Section section) {
  std::string bytes = ReadFile(path);
  SealedHeader header;
  ASSERT_GE(bytes.size(), sizeof(header));
  std::memcpy(&header, bytes.data(), sizeof(header));
  const SealedSection& place = header.sections[static_cast<size_t>(section)];
  bytes[place.offset + place.bytes / 2] ^= 1;
  WriteFile(path, bytes);
}

class CheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start());
    tenant_ = server_.NewTenant();
    owner_ = std::make_unique<Client>(server_.Owner(tenant_));
    first_ = UploadGraph(*owner_, tenant_.name, MakeGraph(901));
    second_ = UploadGraph(*owner_, tenant_.name, MakeGraph(902));
  }

  // datasets/{tenant}/{id}/graph.sealed of the data directory.
  std::string FileOf(const std::string& dataset) const {
    absl::string_view id = dataset;
    EXPECT_TRUE(absl::ConsumePrefix(&id, absl::StrCat(tenant_.name, "/datasets/")));
    return absl::StrCat(server_.data_directory(), "/datasets/", tenant_.id, "/", id, "/graph.sealed");
  }

  TestServer server_;
  TenantAccess tenant_;
  std::unique_ptr<Client> owner_;
  std::string first_;
  std::string second_;
};

TEST_F(CheckTest, AfterAnUploadAllIsWellAndTheServerGoesOn) {
  const CommandResult result = Check(server_.data_directory());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              SaysOfDatasets(absl::StrCat(first_, kOk, second_, kOk,
                                          "datasets: 2 ok, 0 damaged or missing; files of no dataset: 0\n")));
  EXPECT_EQ(result.err, "");
  const auto job = CreateJob(*owner_, JobRequest(first_, 1));
  ASSERT_THAT(job.status, IsOk());
  EXPECT_EQ(WaitForJob(*owner_, job.value.name()).state(), v1::Job::SUCCEEDED);
}

TEST_F(CheckTest, WithoutAServerItFindsTheSame) {
  EXPECT_EQ(server_.Terminate(), std::optional<int>(0));
  // A slash at the end of the directory changes nothing.
  const CommandResult result = Check(server_.data_directory() + "/");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              SaysOfDatasets(absl::StrCat(first_, kOk, second_, kOk,
                                          "datasets: 2 ok, 0 damaged or missing; files of no dataset: 0\n")));
  ASSERT_TRUE(server_.Start());
}

TEST_F(CheckTest, OneByteThatChangedIsFoundAndItsSectionNamed) {
  Damage(FileOf(first_), Section::kNeighbours);
  const CommandResult result = Check(server_.data_directory());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, SaysOfDatasets(absl::StrCat(
                              first_,
                              ": neighbours: the checksum does not match; the file is damaged, restore it "
                              "from a backup\n",
                              second_, kOk, "datasets: 1 ok, 1 damaged or missing; files of no dataset: 0\n")));
  // A job on it fails before it computes anything, so its price is given back, and no other job is taken.
  const auto job = CreateJob(*owner_, JobRequest(first_, 1));
  ASSERT_THAT(job.status, IsOk());
  const v1::Job ended = WaitForJob(*owner_, job.value.name());
  EXPECT_EQ(ended.state(), v1::Job::FAILED);
  EXPECT_THAT(ended.failure(), HasSubstr("nothing was computed from it, and the price was given back"));
  EXPECT_THAT(CreateJob(*owner_, JobRequest(first_, 1)).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::DATASET_OUT_OF_SERVICE));
  EXPECT_THAT(server_.log(), Not(HasSubstr("neighbours")));
}

TEST_F(CheckTest, AMissingFileIsAFaultAndAStrangerIsMentioned) {
  std::filesystem::rename(FileOf(first_), absl::StrCat(server_.data_directory(), "/datasets/stray"));
  const CommandResult result = Check(server_.data_directory());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out,
              SaysOfDatasets(absl::StrCat(first_, ": cannot open ", FileOf(first_), ": No such file or directory\n",
                                          second_, kOk, "datasets/stray: belongs to no dataset of the store\n",
                                          "datasets: 1 ok, 1 damaged or missing; files of no dataset: 1\n")));
}

TEST(CheckNothingTest, ADirectoryWithoutAStoreIsAnErrorAndStaysAsItIs) {
  const TemporaryDirectory directory;
  const CommandResult result = Check(directory.File("data"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat("there is no store at ", directory.File("data"), "/dpar.sqlite")));
  EXPECT_FALSE(std::filesystem::exists(directory.File("data")));
}

}  // namespace
}  // namespace dpar::e2e
