// What a restore leaves when it fails or is cut off, on both engines.
#include "server/upkeep/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"
#include "server/store/testing/private_postgres.h"
#include "server/store/testing/temporary_store.h"
#include "server/upkeep/copy_file.h"
#include "server/upkeep/manifest.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using testing::Engine;
using ::testing::HasSubstr;
using testing::PrivatePostgres;
namespace fs = std::filesystem;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class RestoreTest : public ::testing::TestWithParam<Engine> {
 protected:
  static void SetUpTestSuite() { postgres_ = PrivatePostgres::Start(); }
  static void TearDownTestSuite() { postgres_.reset(); }

  // A store of one tenant that was backed up, and of two since.
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/restore_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    place_ = std::make_unique<StorePlace>(
        StorePlace{DataDirectory(root_ + "/data"), GetParam() == Engine::kPostgres ? postgres_->NewDatabase() : ""});
    ASSERT_TRUE(MakeParentDirectory(place_->directory.Lock()).ok());
    ASSERT_TRUE(WriteFileDurably(place_->directory.OperatorToken(), "older", 0600).ok());
    const std::unique_ptr<Database> database = OpenStore(*place_).value();
    ASSERT_TRUE(Migrate(*database).ok());
    AddTenant(*database, "first");
    const absl::Status made = BackUp(*place_, root_ + "/backup", kNow, progress_).status();
    ASSERT_TRUE(made.ok()) << made;
    AddTenant(*database, "second");
    ASSERT_TRUE(WriteFileDurably(place_->directory.OperatorToken(), "newer", 0600).ok());
  }
  void TearDown() override { fs::remove_all(root_); }

  static void AddTenant(Database& database, const std::string& id) {
    ASSERT_TRUE(database.Write([&](Transaction& t) { return InsertTenant(t, id, "key", kNow); }).ok());
  }
  std::vector<std::string> Tenants() {
    const std::unique_ptr<Database> database = OpenStore(*place_).value();
    const auto page = ReadFrom(*database, [](Transaction& t) { return ListTenants(t, 10, ""); });
    std::vector<std::string> names;
    for (const v1::Tenant& tenant : page.value().tenants) {
      names.push_back(tenant.name());
    }
    return names;
  }
  absl::Status PutBack() { return Restore(*place_, root_ + "/backup", /*replace=*/true, kNow, progress_).status(); }
  // What was there before the restore is all there, and nothing else.
  void ExpectUntouched() {
    EXPECT_THAT(Tenants(), ElementsAre("tenants/first", "tenants/second"));
    EXPECT_EQ(ReadWholeFile(place_->directory.OperatorToken()).value(), "newer");
    for (const auto& entry : fs::directory_iterator(place_->directory.root())) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(name == "lock" || name == "operator.token" || name.rfind("dpar.sqlite", 0) == 0) << name;
    }
    EXPECT_TRUE(CheckRestored(place_->directory).ok());
  }
  // Replaces a file of the backup, and says in its manifest that it has always been like that.
  void Forge(const std::string& path, const std::string& bytes) {
    const std::string file = absl::StrCat(root_, "/backup/", path);
    ASSERT_TRUE(WriteFileDurably(file, bytes, 0600).ok());
    Manifest manifest = ParseManifest(ReadWholeFile(root_ + "/backup/MANIFEST").value()).value();
    for (BackedUpFile& described : manifest.files) {
      if (described.path == path) {
        described = DescribeFile(file, path).value();
      }
    }
    ASSERT_TRUE(WriteFileDurably(root_ + "/backup/MANIFEST", FormatManifest(manifest), 0600).ok());
  }
  // Has `first`, in the shell, run before a program of PostgreSQL's. What is returned undoes it.
  auto Wrap(const std::string& program, const std::string& first) {
    const std::string path = std::getenv("PATH");
    fs::create_directory(root_ + "/bin");
    const std::string script = absl::StrCat(root_, "/bin/", program);
    EXPECT_TRUE(WriteFileDurably(script,
                                 absl::StrCat("#!/bin/sh\nexport ROOT='", root_, "' DATA='", place_->directory.root(),
                                              "' PATH='", path, "'\n", first, "\nexec ", program, " \"$@\"\n"),
                                 0700)
                    .ok());
    setenv("PATH", absl::StrCat(root_, "/bin:", path).c_str(), 1);
    return absl::Cleanup([path] { setenv("PATH", path.c_str(), 1); });
  }
  static std::string StoreCopy() { return GetParam() == Engine::kPostgres ? kPostgresDump : kSqliteCopy; }

  static std::unique_ptr<PrivatePostgres> postgres_;
  std::string root_;
  std::unique_ptr<StorePlace> place_;
  std::ostringstream progress_;
};

std::unique_ptr<PrivatePostgres> RestoreTest::postgres_;

class PostgresRestoreTest : public RestoreTest {};

TEST_P(RestoreTest, PutsBackWhatWasBackedUpAndMovesTheRestAside) {
  const absl::Status restored = PutBack();
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_THAT(Tenants(), ElementsAre("tenants/first"));
  EXPECT_EQ(ReadWholeFile(place_->directory.OperatorToken()).value(), "older");
  EXPECT_EQ(ReadWholeFile(place_->directory.root() + "/replaced-20231114T221320Z/operator.token").value(), "newer");
  EXPECT_FALSE(fs::exists(place_->directory.root() + "/store.sql"));
  EXPECT_TRUE(CheckRestored(place_->directory).ok());
}

TEST_P(RestoreTest, AStoreThatIsCutShortInTheBackupChangesNothing) {
  const std::string whole = ReadWholeFile(absl::StrCat(root_, "/backup/", StoreCopy())).value();
  for (const size_t bytes : {whole.size() / 2, whole.size() / 4 * 3}) {
    Forge(StoreCopy(), whole.substr(0, bytes));
    const absl::Status refused = PutBack();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("nothing was restored"));
    ExpectUntouched();
  }
}

TEST_P(RestoreTest, OneThatWasCutOffIsNotServedAndIsMadeGoodByAnother) {
  ASSERT_TRUE(WriteFileDurably(place_->directory.root() + "/restoring", "", 0600).ok());
  const absl::Status unserved = CheckRestored(place_->directory);
  EXPECT_EQ(unserved.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unserved.message()), HasSubstr("run `dpard restore --replace` again"));
  // Another that fails does not make it good, though it changes nothing.
  const std::string whole = ReadWholeFile(absl::StrCat(root_, "/backup/", StoreCopy())).value();
  Forge(StoreCopy(), whole.substr(0, whole.size() / 2));
  EXPECT_EQ(PutBack().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(CheckRestored(place_->directory).ok());
  Forge(StoreCopy(), whole);
  const absl::Status restored = PutBack();
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_TRUE(CheckRestored(place_->directory).ok());
  EXPECT_EQ(ReadWholeFile(place_->directory.OperatorToken()).value(), "older");
  EXPECT_THAT(Tenants(), ElementsAre("tenants/first"));
}

TEST_P(RestoreTest, APlaceForWhatIsReplacedThatIsTakenIsRefused) {
  const std::string aside = place_->directory.root() + "/replaced-20231114T221320Z";
  ASSERT_TRUE(fs::create_directory(aside));
  ASSERT_TRUE(WriteFileDurably(aside + "/operator.token", "oldest", 0600).ok());
  const absl::Status refused = PutBack();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("nothing was restored. Try again in a second"));
  EXPECT_EQ(ReadWholeFile(aside + "/operator.token").value(), "oldest");
  fs::remove_all(aside);
  ExpectUntouched();
}

TEST_P(RestoreTest, AMarkThatCannotBeWrittenChangesNothing) {
  // A directory has the mark's name.
  const std::string mark = place_->directory.root() + "/restoring";
  ASSERT_TRUE(fs::create_directory(mark));
  const absl::Status refused = PutBack();
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), HasSubstr("nothing was restored"));
  fs::remove(mark);
  ExpectUntouched();
}

TEST_P(PostgresRestoreTest, WhatWasTherePartlyReplacedIsNotServed) {
  // The tables are replaced; then there is no place to move the files to.
  const absl::Cleanup put_back = Wrap("psql", "touch \"$DATA/replaced-20231114T221320Z\"");
  const absl::Status broken = PutBack();
  EXPECT_EQ(broken.code(), absl::StatusCode::kUnavailable) << broken;
  EXPECT_THAT(std::string(broken.message()), HasSubstr("run `dpard restore --replace` again"));
  EXPECT_THAT(Tenants(), ElementsAre("tenants/first"));
  EXPECT_EQ(ReadWholeFile(place_->directory.OperatorToken()).value(), "newer");
  EXPECT_EQ(CheckRestored(place_->directory).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(PostgresRestoreTest, WhatCameWhileFilesWereGatheredIsMovedAsideToo) {
  const absl::Cleanup put_back = Wrap("pg_restore", "echo -n new > \"$DATA/late\"");
  const absl::Status restored = PutBack();
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_FALSE(fs::exists(place_->directory.root() + "/late"));
  EXPECT_EQ(ReadWholeFile(place_->directory.root() + "/replaced-20231114T221320Z/late").value(), "new");
}

TEST_P(PostgresRestoreTest, WhoeverConnectedWhileFilesWereGatheredIsSeen) {
  // It stays until the test is over.
  const absl::Cleanup put_back = Wrap(
      "pg_restore", absl::StrCat("psql -d '", place_->postgres_uri,
                                 "' -c '\\! touch \"$ROOT/connected\"; while [ -e \"$ROOT/connected\" ]; do sleep 0.1; "
                                 "done' > /dev/null 2>&1 < /dev/null &\n"
                                 "while [ ! -e \"$ROOT/connected\" ]; do sleep 0.1; done"));
  const absl::Status refused = PutBack();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()),
              ::testing::AllOf(HasSubstr("1 other sessions use the database"), HasSubstr("nothing was restored")));
  ExpectUntouched();
}

TEST_P(PostgresRestoreTest, ADumpThatFailsWhenItIsHalfLoadedLeavesEveryTableAsItWas) {
  // Rows that were inserted one by one pass, and rows that are copied into an empty table do not: the dump is whole,
  // and fails after the tables were dropped and made anew.
  {
    const std::unique_ptr<Database> database = OpenStore(*place_).value();
    ASSERT_TRUE(database
                    ->Write([](Transaction& t) -> absl::Status {
                      for (const char* sql :
                           {"CREATE TABLE seen (x BIGINT)", "INSERT INTO seen VALUES (1)",
                            "CREATE FUNCTION has_seen(BIGINT) RETURNS BOOLEAN IMMUTABLE LANGUAGE sql AS "
                            "'SELECT EXISTS (SELECT 1 FROM public.seen WHERE seen.x = $1)'",
                            "CREATE TABLE aa_strict (x BIGINT CHECK (has_seen(x)))",
                            "INSERT INTO aa_strict VALUES (1)"}) {
                        DPAR_RETURN_IF_ERROR(t.Execute(sql, {}).status());
                      }
                      return absl::OkStatus();
                    })
                    .ok());
    ASSERT_TRUE(BackUp(*place_, root_ + "/strict", kNow, progress_).ok());
    ASSERT_TRUE(database
                    ->Write([](Transaction& t) -> absl::Status {
                      DPAR_RETURN_IF_ERROR(t.Execute("DROP TABLE aa_strict", {}).status());
                      return t.Execute("DROP FUNCTION has_seen", {}).status();
                    })
                    .ok());
  }
  const absl::Status refused = Restore(*place_, root_ + "/strict", /*replace=*/true, kNow, progress_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), ::testing::AllOf(HasSubstr("psql failed"), HasSubstr("aa_strict"),
                                                               HasSubstr("what was there before is")));
  // Nothing of the row that failed.
  EXPECT_THAT(std::string(refused.message()),
              ::testing::Not(::testing::AnyOf(HasSubstr("row contains"), HasSubstr("line 1"))));
  ExpectUntouched();
  // What an earlier one left half replaced stays so.
  ASSERT_TRUE(WriteFileDurably(place_->directory.root() + "/restoring", "", 0600).ok());
  EXPECT_EQ(Restore(*place_, root_ + "/strict", /*replace=*/true, kNow, progress_).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_FALSE(CheckRestored(place_->directory).ok());
}

TEST_P(PostgresRestoreTest, TablesThatTheBackupDoesNotKnowAreGone) {
  {
    const std::unique_ptr<Database> database = OpenStore(*place_).value();
    ASSERT_TRUE(database
                    ->Write([](Transaction& t) -> absl::Status {
                      return t.Execute("CREATE TABLE \"of a \"\"newer\"\" version\" (x BIGINT)", {}).status();
                    })
                    .ok());
  }
  const absl::Status restored = PutBack();
  ASSERT_TRUE(restored.ok()) << restored;
  const std::unique_ptr<Database> database = OpenStore(*place_).value();
  EXPECT_EQ(database
                ->Read([](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                                        t.Query("SELECT COUNT(*) FROM pg_tables WHERE tablename LIKE 'of a %'", {}));
                  EXPECT_EQ(RowReader(rows.at(0)).Int(), 0);
                  return absl::OkStatus();
                })
                .code(),
            absl::StatusCode::kOk);
}

TEST_P(PostgresRestoreTest, WithoutPostgresqlsProgramsItIsSaidWhatToInstallAndNothingChanges) {
  const std::string path = std::getenv("PATH");
  const absl::Cleanup put_back = [&path] { setenv("PATH", path.c_str(), 1); };
  setenv("PATH", "/nonexistent", 1);
  const absl::Status unmade = BackUp(*place_, root_ + "/another", kNow, progress_).status();
  EXPECT_EQ(unmade.code(), absl::StatusCode::kFailedPrecondition) << unmade;
  EXPECT_EQ(unmade.message(),
            "there is no pg_dump here, which comes with PostgreSQL; install it (Debian: postgresql-client)");
  EXPECT_FALSE(fs::exists(root_ + "/another"));
  EXPECT_FALSE(fs::exists(root_ + "/another.part"));
  const absl::Status refused = PutBack();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("there is no pg_restore here"));
  ExpectUntouched();
}

TEST_P(PostgresRestoreTest, WithoutPsqlNothingChangesEither) {
  const std::string path = std::getenv("PATH");
  const absl::Cleanup put_back = [&path] { setenv("PATH", path.c_str(), 1); };
  fs::create_directory(root_ + "/bin");
  for (const absl::string_view directory : absl::StrSplit(path, ':')) {
    const fs::path program = fs::path(std::string(directory)) / "pg_restore";
    if (fs::exists(program) && !fs::exists(root_ + "/bin/pg_restore")) {
      fs::create_symlink(program, root_ + "/bin/pg_restore");
    }
  }
  setenv("PATH", (root_ + "/bin").c_str(), 1);
  const absl::Status refused = PutBack();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("there is no psql here"));
  ExpectUntouched();
}

INSTANTIATE_TEST_SUITE_P(Engines, RestoreTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

std::vector<Engine> Postgres() {
  std::vector<Engine> engines = testing::Engines();
  std::erase(engines, Engine::kSqlite);
  return engines;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PostgresRestoreTest);
INSTANTIATE_TEST_SUITE_P(Engines, PostgresRestoreTest, ::testing::ValuesIn(Postgres()), testing::EngineName);

}  // namespace
}  // namespace dpar
