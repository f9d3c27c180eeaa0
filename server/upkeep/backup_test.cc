// Backups of a store with files, and what is refused on the way back.
#include "server/upkeep/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "core/certificate/signing_key.h"
#include "core/status_macros.h"
#include "server/directory_lock.h"
#include "server/files.h"
#include "server/ledger/ledger.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"
#include "server/upkeep/commands.h"
#include "server/upkeep/restore.h"
#include "server/witness/witness.h"

namespace dpar {
namespace {

constexpr char kPopulation[] = "tenants/acme/populations/p";

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

// An SQLite store with one public dataset and one released model.
class BackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/backup_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    place_ = std::make_unique<StorePlace>(StorePlace{DataDirectory(root_ + "/data"), ""});
    Put("datasets/acme/d/graph.sealed", "a graph");
    Put("jobs/acme/j/1/model.npz", "weights");
    Put("jobs/acme/j/1/model.pt", "script");
    Put("jobs/acme/other/1/model.pt", "nobody's");
    Put("keys/signing.key", "secret");
    Put("keys/lock", "");
    Put("operator.token", "token");
    database_ = OpenStore(*place_).value();
    ASSERT_TRUE(Migrate(*database_).ok());
    const absl::Status made = database_->Write([](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", "key", kNow));
      v1::Dataset dataset;
      dataset.set_name("tenants/acme/datasets/d");
      dataset.set_is_public(true);
      DPAR_RETURN_IF_ERROR(InsertDataset(t, dataset, 10));
      DPAR_RETURN_IF_ERROR(
          t.Execute("INSERT INTO jobs (name, tenant, dataset, spec, plan, state, failure, create_time, "
                    "attempts, cancel_requested) VALUES ('tenants/acme/jobs/j', 'tenants/acme', "
                    "'tenants/acme/datasets/d', '', '', 3, '', 1, 1, 0)",
                    {})
              .status());
      DPAR_RETURN_IF_ERROR(
          t.Execute("INSERT INTO outputs (job, envelope, lease) VALUES ('tenants/acme/jobs/j', '', 1)", {}).status());
      return t
          .Execute(
              "INSERT INTO output_files (job, name, sha256, bytes) VALUES ('tenants/acme/jobs/j', 'model.npz', $1, 7), "
              "('tenants/acme/jobs/j', 'model.pt', $2, 6)",
              {Sha256Hex("weights"), Sha256Hex("script")})
          .status();
    });
    ASSERT_TRUE(made.ok()) << made;
  }
  void TearDown() override {
    database_.reset();
    fs::remove_all(root_);
  }

  void Put(const std::string& path, const std::string& bytes) {
    const std::string file = absl::StrCat(root_, "/data/", path);
    ASSERT_TRUE(MakeParentDirectory(file).ok());
    ASSERT_TRUE(WriteFileDurably(file, bytes, 0600).ok());
  }
  absl::StatusOr<Manifest> Make(const std::string& name = "b") {
    return BackUp(*place_, absl::StrCat(root_, "/", name), kNow, progress_);
  }
  // To an empty place, unless it is said where.
  absl::Status PutBack(const std::string& name = "b", const std::string& data = "restored", bool replace = false) {
    return Restore({DataDirectory(absl::StrCat(root_, "/", data)), ""}, absl::StrCat(root_, "/", name), replace, kNow,
                   progress_)
        .status();
  }
  static std::vector<std::string> Paths(const Manifest& manifest) {
    std::vector<std::string> paths;
    for (const BackedUpFile& file : manifest.files) {
      paths.push_back(file.path);
    }
    return paths;
  }

  std::string root_;
  std::unique_ptr<StorePlace> place_;
  std::unique_ptr<Database> database_;
  std::ostringstream progress_;
};

TEST_F(BackupTest, ABackupInsideTheDataDirectoryIsNotRestoredOverIt) {
  ASSERT_TRUE(Make().ok());
  database_.reset();
  fs::rename(root_ + "/b", root_ + "/data/b");
  fs::create_symlink(root_ + "/data/b", root_ + "/link");
  for (const char* source : {"data/b", "data/../data/b", "link"}) {
    const absl::Status refused = PutBack(source, "data", true);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << source;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("lies in the data directory")) << source;
  }
  EXPECT_TRUE(fs::exists(root_ + "/data/dpar.sqlite"));
  EXPECT_TRUE(fs::exists(root_ + "/data/b/MANIFEST"));
}

TEST_F(BackupTest, ACheckCountsABudgetThatSpentSomethingAndHasNoMark) {
  const std::string witness = root_ + "/witness";
  Put("keys/signing.key", SigningKey::Generate().value().private_pem());
  const absl::Status spent = database_->Write([](Transaction& t) -> absl::Status {
    DPAR_RETURN_IF_ERROR(OpenBudget(t, kPopulation, MakeBudgetTerms(4, 1e-5).value(), {"server", kNow}));
    DPAR_RETURN_IF_ERROR(RememberContent(t, "tenants/acme", std::string(64, 'a'), kPopulation));
    return Debit(t, kPopulation, 7, "elsewhere", {"operator", kNow}).status();
  });
  ASSERT_TRUE(spent.ok()) << spent;
  std::ostringstream out;
  const absl::StatusOr<int64_t> without = CheckEverything(*place_, witness, out);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_THAT(out.str(), HasSubstr("1 populations have spent something and have no mark"));
  ASSERT_TRUE(Witness(*database_, witness).CoverAll(kPopulation).ok());
  EXPECT_EQ(CheckEverything(*place_, witness, out).value(), *without - 1);
}

TEST_F(BackupTest, HoldsTheStoreWhatItNamesAndTheKeysAndNothingElse) {
  const absl::StatusOr<Manifest> manifest = Make();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(Paths(*manifest),
            (std::vector<std::string>{"datasets/acme/d/graph.sealed", "dpar.sqlite", "jobs/acme/j/1/model.npz",
                                      "jobs/acme/j/1/model.pt", "keys/signing.key", "operator.token"}));
  EXPECT_EQ(manifest->made_at, "2023-11-14T22:13:20Z");
  EXPECT_EQ(ParseManifest(ReadWholeFile(root_ + "/b/MANIFEST").value()).value(), *manifest);
  EXPECT_EQ(fs::status(root_ + "/b").permissions(), fs::perms::owner_all);
  for (const BackedUpFile& file : manifest->files) {
    EXPECT_EQ(fs::status(absl::StrCat(root_, "/b/", file.path)).permissions() & ~fs::perms::owner_all, fs::perms::none)
        << file.path;
  }
  EXPECT_FALSE(fs::exists(root_ + "/b.part"));
}

TEST_F(BackupTest, WhatIsRestoredIsWhatWasBackedUp) {
  ASSERT_TRUE(Make().ok());
  const absl::Status restored = PutBack();
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(ReadWholeFile(root_ + "/restored/datasets/acme/d/graph.sealed").value(), "a graph");
  EXPECT_EQ(ReadWholeFile(root_ + "/restored/keys/signing.key").value(), "secret");
  const std::unique_ptr<Database> store = OpenStore({DataDirectory(root_ + "/restored"), ""}).value();
  EXPECT_TRUE(ReadFrom(*store, [](Transaction& t) { return GetDataset(t, "tenants/acme/datasets/d"); }).ok());
}

TEST_F(BackupTest, NothingIsWrittenOver) {
  ASSERT_TRUE(Make().ok());
  EXPECT_EQ(Make().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(MakeParentDirectory(root_ + "/c.part/x").ok());
  const absl::Status cut_off = Make("c").status();
  EXPECT_EQ(cut_off.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(cut_off.message()), HasSubstr("cut off"));
}

TEST_F(BackupTest, AFileThatTheStoreNamesAndThatIsGoneOrChangedIsSaidAndLeavesNoBackup) {
  Put("jobs/acme/j/1/model.pt", "Script");
  EXPECT_EQ(Make().status().code(), absl::StatusCode::kDataLoss);
  Put("jobs/acme/j/1/model.pt", "script");
  fs::remove(root_ + "/data/datasets/acme/d/graph.sealed");
  const absl::Status gone = Make().status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("dpard check"));
  EXPECT_FALSE(fs::exists(root_ + "/b"));
  EXPECT_FALSE(fs::exists(root_ + "/b.part"));
}

TEST_F(BackupTest, ADamagedBackupIsNotRestoredAndTouchesNothing) {
  const Manifest manifest = Make().value();
  for (const BackedUpFile& file : manifest.files) {
    const std::string path = absl::StrCat(root_, "/b/", file.path);
    const std::string good = ReadWholeFile(path).value();
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
    ASSERT_TRUE(WriteFileDurably(path, bad, 0600).ok());
    const absl::Status damaged = PutBack();
    EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss) << file.path;
    EXPECT_THAT(std::string(damaged.message()), HasSubstr(file.path));
    fs::remove(path);
    EXPECT_EQ(PutBack().code(), absl::StatusCode::kDataLoss) << file.path;
    ASSERT_TRUE(WriteFileDurably(path, good, 0600).ok());
  }
  EXPECT_FALSE(fs::exists(root_ + "/restored"));
  fs::remove(root_ + "/b/MANIFEST");
  EXPECT_EQ(PutBack().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(PutBack("nothing").code(), absl::StatusCode::kNotFound);
}

TEST_F(BackupTest, APlaceThatIsInUseIsRefused) {
  ASSERT_TRUE(Make().ok());
  database_.reset();
  const absl::Status taken = PutBack("b", "data");
  EXPECT_EQ(taken.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(taken.message()), HasSubstr("--replace"));
  {
    const DirectoryLock served = DirectoryLock::Acquire(root_ + "/data/lock").value();
    EXPECT_EQ(PutBack("b", "data", /*replace=*/true).code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(ReadWholeFile(root_ + "/data/operator.token").value(), "token");
}

TEST_F(BackupTest, WhatIsReplacedIsMovedAside) {
  ASSERT_TRUE(Make().ok());
  database_.reset();
  Put("operator.token", "newer");
  const absl::Status replaced = PutBack("b", "data", /*replace=*/true);
  ASSERT_TRUE(replaced.ok()) << replaced;
  EXPECT_EQ(ReadWholeFile(root_ + "/data/operator.token").value(), "token");
  EXPECT_EQ(ReadWholeFile(root_ + "/data/replaced-20231114T221320Z/operator.token").value(), "newer");
}

TEST_F(BackupTest, ABackupOfTheOtherEngineIsRefused) {
  ASSERT_TRUE(Make().ok());
  const absl::Status other =
      Restore({DataDirectory(root_ + "/restored"), "postgresql:///none"}, root_ + "/b", false, kNow, progress_)
          .status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr("SQLite"));
}

TEST_F(BackupTest, AStoreOfAnotherSchemaIsNeitherBackedUpNorJudged) {
  ASSERT_TRUE(database_
                  ->Write([](Transaction& t) -> absl::Status {
                    return t.Execute("UPDATE schema_version SET version = version - 1", {}).status();
                  })
                  .ok());
  const absl::Status older = Make().status();
  EXPECT_EQ(older.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(older.message()), HasSubstr("dpard init"));
  ASSERT_TRUE(database_
                  ->Write([](Transaction& t) -> absl::Status {
                    return t.Execute("UPDATE schema_version SET version = version + 2", {}).status();
                  })
                  .ok());
  const absl::Status newer = Make().status();
  EXPECT_EQ(newer.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(newer.message()), HasSubstr("run a newer dpard"));
}

TEST_F(BackupTest, ADatasetThatIsDeletedMeanwhileIsNoFault) {
  // The row goes before the file does.
  ASSERT_TRUE(
      database_->Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/d", kNow); }).ok());
  fs::remove(root_ + "/data/datasets/acme/d/graph.sealed");
  const absl::StatusOr<Manifest> manifest = Make();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_THAT(Paths(*manifest), Not(::testing::Contains("datasets/acme/d/graph.sealed")));
}

}  // namespace
}  // namespace dpar
