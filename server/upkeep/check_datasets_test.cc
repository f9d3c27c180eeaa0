#include "server/upkeep/check_datasets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/graph/sealed_format.h"
#include "core/graph/sealed_graph.h"
#include "server/files.h"
#include "server/store/datasets.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

// Two nodes and the edge between them, of 2 classes.
Graph Pair(int64_t feature_count) {
  Graph graph;
  graph.sizes = {2, feature_count, 2};
  graph.edge_offsets = {0, 1, 2};
  graph.neighbours = {1, 0};
  graph.features.offsets = {0, 1, 1};
  graph.features.columns = {0};
  graph.features.values = {1.0F};
  graph.labels = {0, 1};
  return graph;
}

class CheckDatasetsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string tenant : {"acme", "other"}) {
      ASSERT_EQ(Write([&](Transaction& t) { return InsertTenant(t, tenant, "k", kNow); }), absl::OkStatus());
    }
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  // A public dataset of 3 features in the store, and its file.
  void AddDataset(const std::string& name) {
    v1::Dataset stored;
    stored.set_name(name);
    stored.set_node_count(2);
    stored.set_feature_count(3);
    stored.set_class_count(2);
    stored.set_is_public(true);
    ASSERT_EQ(Write([&](Transaction& t) { return InsertDataset(t, stored, 1000); }), absl::OkStatus());
    ASSERT_EQ(MakeParentDirectory(FileOf(name)), absl::OkStatus());
    ASSERT_EQ(WriteSealedGraph(FileOf(name), Pair(3)), absl::OkStatus());
  }
  std::string FileOf(const std::string& name) const { return store_.directory().DatasetFile(name); }

  // How many faults, and the lines.
  std::pair<int64_t, std::string> Check() {
    std::ostringstream out;
    const absl::StatusOr<int64_t> faults = CheckDatasets(store_.database(), store_.directory(), out);
    EXPECT_EQ(faults.status(), absl::OkStatus());
    return {faults.value_or(-1), out.str()};
  }

  dpar::testing::TemporaryStore store_;
};

TEST_F(CheckDatasetsTest, AnEmptyStoreIsFine) {
  EXPECT_EQ(Check(), std::pair(int64_t{0}, std::string("datasets: 0 ok, 0 damaged or missing; "
                                                       "files of no dataset: 0\n")));
}

TEST_F(CheckDatasetsTest, EveryDatasetOfEveryTenantHasItsLine) {
  AddDataset("tenants/acme/datasets/a");
  AddDataset("tenants/acme/datasets/b");
  AddDataset("tenants/other/datasets/a");
  EXPECT_EQ(Check(), std::pair(int64_t{0}, std::string("tenants/acme/datasets/a: ok, 2 nodes, 3 features, 2 classes\n"
                                                       "tenants/acme/datasets/b: ok, 2 nodes, 3 features, 2 classes\n"
                                                       "tenants/other/datasets/a: ok, 2 nodes, 3 features, 2 classes\n"
                                                       "datasets: 3 ok, 0 damaged or missing; "
                                                       "files of no dataset: 0\n")));
}

TEST_F(CheckDatasetsTest, MoreDatasetsThanOnePageHoldsAreAllChecked) {
  for (int i = 0; i < 101; ++i) {
    AddDataset(absl::StrCat("tenants/acme/datasets/d", i));
  }
  const auto [faults, lines] = Check();
  EXPECT_EQ(faults, 0);
  EXPECT_THAT(lines, ::testing::HasSubstr("\ndatasets: 101 ok, 0 damaged or missing; files of no dataset: 0\n"));
}

TEST_F(CheckDatasetsTest, ADamagedFileIsAFaultThatNamesTheSectionAndTheOthersGoOn) {
  AddDataset("tenants/acme/datasets/a");
  AddDataset("tenants/acme/datasets/b");
  std::string bytes = ReadWholeFile(FileOf("tenants/acme/datasets/a")).value();
  // The second section begins on the third page.
  bytes[2 * kSealedPageBytes] ^= 1;
  ASSERT_EQ(WriteFileDurably(FileOf("tenants/acme/datasets/a"), bytes, 0600), absl::OkStatus());
  EXPECT_EQ(Check(), std::pair(int64_t{1}, std::string("tenants/acme/datasets/a: neighbours: the checksum does not "
                                                       "match; the file is damaged, restore it from a backup\n"
                                                       "tenants/acme/datasets/b: ok, 2 nodes, 3 features, 2 classes\n"
                                                       "datasets: 1 ok, 1 damaged or missing; "
                                                       "files of no dataset: 0\n")));
}

TEST_F(CheckDatasetsTest, ADatasetOutOfServiceComesBackOnceItsFileIsWhole) {
  AddDataset("tenants/acme/datasets/a");
  const std::string whole = ReadWholeFile(FileOf("tenants/acme/datasets/a")).value();
  std::string bytes = whole;
  bytes[2 * kSealedPageBytes] ^= 1;
  ASSERT_EQ(WriteFileDurably(FileOf("tenants/acme/datasets/a"), bytes, 0600), absl::OkStatus());
  ASSERT_EQ(Write([](Transaction& t) { return SetOutOfService(t, "tenants/acme/datasets/a", "damaged"); }),
            absl::OkStatus());
  const std::string damaged =
      "tenants/acme/datasets/a: neighbours: the checksum does not match; the file is damaged, restore it from a "
      "backup; "
      "out of service\ndatasets: 0 ok, 1 damaged or missing; files of no dataset: 0\n";
  EXPECT_EQ(Check(), std::pair(int64_t{1}, damaged));
  EXPECT_EQ(Check(), std::pair(int64_t{1}, damaged)) << "it stays out of service";
  ASSERT_EQ(WriteFileDurably(FileOf("tenants/acme/datasets/a"), whole, 0600), absl::OkStatus());
  EXPECT_EQ(Check().second,
            "tenants/acme/datasets/a: ok, 2 nodes, 3 features, 2 classes; back in service\n"
            "datasets: 1 ok, 0 damaged or missing; files of no dataset: 0\n");
  EXPECT_EQ(Check().second,
            "tenants/acme/datasets/a: ok, 2 nodes, 3 features, 2 classes\n"
            "datasets: 1 ok, 0 damaged or missing; files of no dataset: 0\n");
}

TEST_F(CheckDatasetsTest, AMissingFileIsAFault) {
  AddDataset("tenants/acme/datasets/a");
  ASSERT_EQ(RemoveTree(FileOf("tenants/acme/datasets/a")), absl::OkStatus());
  const auto [faults, lines] = Check();
  EXPECT_EQ(faults, 1);
  EXPECT_EQ(lines, absl::StrCat("tenants/acme/datasets/a: cannot open ", FileOf("tenants/acme/datasets/a"),
                                ": No such file or directory\n"
                                "datasets: 0 ok, 1 damaged or missing; files of no dataset: 0\n"));
}

TEST_F(CheckDatasetsTest, AGoodFileOfAnotherDatasetIsAFault) {
  AddDataset("tenants/acme/datasets/a");
  ASSERT_EQ(WriteSealedGraph(FileOf("tenants/acme/datasets/a"), Pair(4)), absl::OkStatus());
  const auto [faults, lines] = Check();
  EXPECT_EQ(faults, 1);
  EXPECT_THAT(lines, ::testing::StartsWith("tenants/acme/datasets/a: the file holds a graph of other sizes than the "
                                           "store says; restore it from a backup\n"));
}

TEST_F(CheckDatasetsTest, FilesThatTheStoreDoesNotKnowAreMentioned) {
  AddDataset("tenants/acme/datasets/a");
  AddDataset("tenants/acme/datasets/deleted");
  ASSERT_EQ(Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/deleted", kNow); }),
            absl::OkStatus());
  for (const std::string& path : {FileOf("tenants/nobody/datasets/x"), FileOf("tenants/acme/datasets/a") + ".7.0.tmp",
                                  store_.directory().root() + "/datasets/acme/stray"}) {
    ASSERT_EQ(MakeParentDirectory(path), absl::OkStatus());
    ASSERT_EQ(WriteFileDurably(path, "x", 0600), absl::OkStatus());
  }
  const auto [faults, lines] = Check();
  EXPECT_EQ(faults, 0);
  for (const std::string file :
       {"nobody/x/graph.sealed", "acme/a/graph.sealed.7.0.tmp", "acme/stray", "acme/deleted/graph.sealed"}) {
    EXPECT_THAT(lines,
                ::testing::HasSubstr(absl::StrCat("\ndatasets/", file, ": belongs to no dataset of the store\n")));
  }
  EXPECT_THAT(lines, ::testing::EndsWith("datasets: 1 ok, 0 damaged or missing; files of no dataset: 4\n"));
}

// Deletes a dataset at the moment when its line before is printed, as a server might.
class DeletingBuffer : public std::stringbuf {
 public:
  explicit DeletingBuffer(std::function<void()> once) : once_(std::move(once)) {}

 protected:
  int sync() override {
    if (once_ != nullptr) {
      std::exchange(once_, nullptr)();
    }
    return std::stringbuf::sync();
  }

 private:
  std::function<void()> once_;
};

TEST_F(CheckDatasetsTest, ADatasetThatIsDeletedMeanwhileIsNoFault) {
  AddDataset("tenants/acme/datasets/a");
  AddDataset("tenants/acme/datasets/b");
  DeletingBuffer buffer([&] {
    ASSERT_EQ(Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/b", kNow); }),
              absl::OkStatus());
    ASSERT_EQ(RemoveTree(std::filesystem::path(FileOf("tenants/acme/datasets/b")).parent_path().string()),
              absl::OkStatus());
  });
  std::ostream out(&buffer);
  EXPECT_EQ(CheckDatasets(store_.database(), store_.directory(), out).value(), 0);
  EXPECT_EQ(buffer.str(),
            "tenants/acme/datasets/a: ok, 2 nodes, 3 features, 2 classes\n"
            "tenants/acme/datasets/b: deleted meanwhile\n"
            "datasets: 1 ok, 0 damaged or missing; files of no dataset: 0\n");
}

}  // namespace
}  // namespace dpar
