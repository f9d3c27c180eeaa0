#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"
#include "server/store/testing/temporary_store.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

using ::dpar::testing::TemporaryStore;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

class StoreTest : public ::testing::Test {
 protected:
  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  void AddTenant(const std::string& id) {
    ASSERT_TRUE(Write([&](Transaction& t) { return InsertTenant(t, id, std::string("\x00\xff", 2), kNow); }).ok());
  }

  TemporaryStore store_;
};

TEST_F(StoreTest, ValuesOfEveryTypeComeBackExactly) {
  const std::string text("caf\xc3\xa9 \x01 'quoted' $1", 20);
  ASSERT_TRUE(
      Write([&](Transaction& t) -> absl::Status {
        DPAR_RETURN_IF_ERROR(t.Execute("CREATE TABLE v (a BIGINT, b DOUBLE PRECISION, c TEXT, d BIGINT)", {}).status());
        return t
            .Execute("INSERT INTO v VALUES ($1, $2, $3, $4)", {std::numeric_limits<int64_t>::min(), 0.1, text, Value()})
            .status();
      }).ok());
  ASSERT_TRUE(store_.database()
                  .Read([&](Transaction& t) -> absl::Status {
                    DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query("SELECT a, b, c, d FROM v", {}));
                    RowReader reader(rows.at(0));
                    EXPECT_EQ(reader.Int(), std::numeric_limits<int64_t>::min());
                    EXPECT_EQ(reader.Real(), 0.1);
                    EXPECT_EQ(reader.Text(), text);
                    EXPECT_EQ(reader.OptionalInt(), std::nullopt);
                    return reader.status();
                  })
                  .ok());
}

TEST_F(StoreTest, SumsKeepAll64Bits) {
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(t.Execute("CREATE TABLE v (a BIGINT)", {}).status());
                DPAR_RETURN_IF_ERROR(t.Execute("INSERT INTO v VALUES ($1), ($1)", {int64_t{1} << 40}).status());
                DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query("SELECT SUM(a) FROM v", {}));
                RowReader reader(rows.at(0));
                EXPECT_EQ(reader.Int(), int64_t{1} << 41);
                return reader.status();
              }).ok());
}

TEST_F(StoreTest, AColumnOfAnotherTypeIsDataLoss) {
  const Row row = {std::string("text")};
  RowReader reader(row);
  EXPECT_EQ(reader.Int(), 0);
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Reason(reader.status()), "STORE_CORRUPT");
}

TEST_F(StoreTest, AColumnThatIsNotThereIsDataLoss) {
  const Row row;
  RowReader reader(row);
  EXPECT_EQ(reader.Text(), "");
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(StoreTest, AFailedBodyLeavesNothing) {
  const absl::Status status = Write([](Transaction& t) -> absl::Status {
    DPAR_RETURN_IF_ERROR(InsertTenant(t, "a", "k", kNow));
    return absl::AbortedError("no");
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  ASSERT_TRUE(store_.database()
                  .Read([](Transaction& t) -> absl::Status {
                    DPAR_ASSIGN_OR_RETURN(const TenantPage page, ListTenants(t, 10, ""));
                    EXPECT_TRUE(page.tenants.empty());
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST_F(StoreTest, ConcurrentWritersDoNotLoseUpdates) {
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(t.Execute("CREATE TABLE counter (n BIGINT)", {}).status());
                return t.Execute("INSERT INTO counter VALUES (0)", {}).status();
              }).ok());
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k) {
        const absl::Status status = Write([](Transaction& t) -> absl::Status {
          DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query("SELECT n FROM counter", {}));
          RowReader reader(rows.at(0));
          return t.Execute("UPDATE counter SET n = $1", {reader.Int() + 1}).status();
        });
        failures += status.ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
  ASSERT_TRUE(store_.database()
                  .Read([](Transaction& t) -> absl::Status {
                    DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query("SELECT n FROM counter", {}));
                    RowReader reader(rows.at(0));
                    EXPECT_EQ(reader.Int(), 200);
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST_F(StoreTest, MigratingTwiceChangesNothing) { EXPECT_TRUE(Migrate(store_.database()).ok()); }

TEST_F(StoreTest, AStoreOfTheFirstVersionIsBroughtToThePresentOne) {
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(t.Execute("ALTER TABLE jobs DROP COLUMN evaluation", {}).status());
                return t.Execute("UPDATE schema_version SET version = 1", {}).status();
              }).ok());
  ASSERT_TRUE(Migrate(store_.database()).ok());
  EXPECT_TRUE(Write([](Transaction& t) { return t.Query("SELECT evaluation FROM jobs", {}).status(); }).ok());
}

TEST_F(StoreTest, ASchemaFromTheFutureIsRefused) {
  ASSERT_TRUE(
      Write([](Transaction& t) { return t.Execute("UPDATE schema_version SET version = 99", {}).status(); }).ok());
  const absl::Status status = Migrate(store_.database());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("newer dpard"));
}

TEST_F(StoreTest, AFileThatIsNoDatabaseIsDataLoss) {
  const std::string path = store_.directory().root() + "/not-a-database";
  ASSERT_TRUE(WriteFileDurably(path, std::string(4096, 'x'), 0600).ok());
  EXPECT_EQ(OpenSqlite(path).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(StoreTest, ATenantIdIsTakenOnce) {
  AddTenant("acme");
  const absl::Status again = Write([](Transaction& t) { return InsertTenant(t, "acme", "k", kNow); });
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Reason(again), "RESOURCE_EXISTS");
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const std::string key, TenantContentKey(t, "acme"));
                EXPECT_EQ(key, std::string("\x00\xff", 2));
                EXPECT_EQ(TenantContentKey(t, "other").status().code(), absl::StatusCode::kNotFound);
                return absl::OkStatus();
              }).ok());
}

TEST_F(StoreTest, PagesJoinUpWithoutGapsOrRepeats) {
  for (int i = 0; i < 7; ++i) {
    AddTenant(absl::StrCat("t", i));
  }
  std::vector<std::string> names;
  std::string token;
  do {
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const TenantPage page, ListTenants(t, 3, token));
                  for (const v1::Tenant& tenant : page.tenants) {
                    names.push_back(tenant.name());
                  }
                  token = page.next_page_token;
                  return absl::OkStatus();
                }).ok());
  } while (!token.empty());
  EXPECT_THAT(names, ::testing::ElementsAre("tenants/t0", "tenants/t1", "tenants/t2", "tenants/t3", "tenants/t4",
                                            "tenants/t5", "tenants/t6"));
}

TEST(PageToken, MustComeFromAPage) {
  EXPECT_EQ(ParsePageToken(MakePageToken({12, "a:b"}))->name, "a:b");
  for (const char* bad : {"x", "1", "1:", ":a", "1.5:a"}) {
    EXPECT_EQ(ParsePageToken(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

StoredDataset PublicDataset(const std::string& name) {
  StoredDataset stored;
  stored.dataset.set_name(name);
  stored.dataset.set_node_count(10);
  stored.dataset.set_feature_count(3);
  stored.dataset.set_class_count(2);
  stored.dataset.set_is_public(true);
  stored.dataset.set_content_digest("ab");
  *stored.dataset.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(kNow));
  return stored;
}

TEST_F(StoreTest, ADatasetsIdIsNeverUsedAgain) {
  AddTenant("acme");
  const StoredDataset stored = PublicDataset("tenants/acme/datasets/d");
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertDataset(t, stored, 5); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return MarkDatasetDeleted(t, stored.dataset.name(), kNow); }).ok());
  const absl::Status again = Write([&](Transaction& t) { return InsertDataset(t, stored, 5); });
  EXPECT_EQ(Reason(again), "RESOURCE_EXISTS");
  const absl::Status get = Write([&](Transaction& t) { return GetDataset(t, stored.dataset.name()).status(); });
  EXPECT_EQ(get.code(), absl::StatusCode::kNotFound);
  const absl::Status twice = Write([&](Transaction& t) { return MarkDatasetDeleted(t, stored.dataset.name(), kNow); });
  EXPECT_EQ(twice.code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, OneDatasetPastTheLimitIsRefusedWithTheLimit) {
  AddTenant("acme");
  ASSERT_TRUE(Write([](Transaction& t) { return InsertDataset(t, PublicDataset("tenants/acme/datasets/a"), 1); }).ok());
  const absl::Status over =
      Write([](Transaction& t) { return InsertDataset(t, PublicDataset("tenants/acme/datasets/b"), 1); });
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("limit"), "max_datasets");
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("maximum"), "1");
}

TEST_F(StoreTest, APrivateDatasetWithoutABudgetIsCorruption) {
  AddTenant("acme");
  StoredDataset stored = PublicDataset("tenants/acme/datasets/d");
  stored.dataset.set_is_public(false);
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertDataset(t, stored, 5); }).ok());
  const absl::Status get = Write([&](Transaction& t) { return GetDataset(t, stored.dataset.name()).status(); });
  EXPECT_EQ(Reason(get), "STORE_CORRUPT");
}

TEST_F(StoreTest, AnAnswerIsRepeatedOnlyForTheSameRequest) {
  const std::string answer("\x00\x01", 2);
  ASSERT_TRUE(Write([&](Transaction& t) { return RememberAnswer(t, "s", "id", "f", answer, kNow); }).ok());
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const auto same, FindAnswer(t, "s", "id", "f"));
                EXPECT_EQ(same, answer);
                DPAR_ASSIGN_OR_RETURN(const auto other_scope, FindAnswer(t, "s2", "id", "f"));
                EXPECT_EQ(other_scope, std::nullopt);
                EXPECT_EQ(Reason(FindAnswer(t, "s", "id", "g").status()), "REQUEST_ID_REUSED");
                return absl::OkStatus();
              }).ok());
}

TEST_F(StoreTest, ATokenIsRevokedOnceAndKeepsItsFirstTime) {
  StoredToken stored;
  stored.token.set_name("operator/tokens/abc");
  stored.token.set_role(v1::OPERATOR);
  stored.salt = "00";
  stored.hash = "11";
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
  for (const int minutes : {1, 2}) {
    ASSERT_TRUE(Write([&](Transaction& t) { return RevokeToken(t, "abc", kNow + absl::Minutes(minutes)); }).ok());
  }
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const StoredToken read, GetToken(t, "abc"));
                EXPECT_EQ(ToMicroseconds(read.token.revoke_time()), absl::ToUnixMicros(kNow + absl::Minutes(1)));
                EXPECT_EQ(read.tenant, "");
                EXPECT_EQ(read.token.name(), "operator/tokens/abc");
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(Write([](Transaction& t) { return RevokeToken(t, "zzz", kNow); }).code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, ATokenOfATenantWithTheOperatorsRoleIsCorruption) {
  StoredToken stored;
  stored.token.set_name("tenants/acme/tokens/abc");
  stored.tenant = "tenants/acme";
  stored.token.set_role(v1::OPERATOR);
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
  EXPECT_EQ(Reason(Write([](Transaction& t) { return GetToken(t, "abc").status(); })), "STORE_CORRUPT");
}

TEST_F(StoreTest, FilesAreWrittenWholeWithTheAskedMode) {
  const std::string path = store_.directory().root() + "/a/b/key";
  ASSERT_TRUE(MakeParentDirectory(path).ok());
  ASSERT_TRUE(WriteFileDurably(path, "first", 0600).ok());
  ASSERT_TRUE(WriteFileDurably(path, "second", 0600).ok());
  EXPECT_EQ(*ReadWholeFile(path), "second");
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(stat((store_.directory().root() + "/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_F(StoreTest, ReadingOrWritingWhereNothingIsIsUnavailable) {
  EXPECT_EQ(ReadWholeFile("/nonexistent/file").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(WriteFileDurably("/nonexistent/file", "x", 0600).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(RemoveTree("/nonexistent/file").ok());
}

TEST(DataDirectory, ResourcesHaveTheirOwnPlaces) {
  const DataDirectory directory("/data");
  EXPECT_EQ(directory.UploadFile("tenants/t/uploads/u"), "/data/uploads/t/u");
  EXPECT_EQ(directory.DatasetFile("tenants/t/datasets/d"), "/data/datasets/t/d/graph.sealed");
  EXPECT_EQ(directory.WeightsFile("tenants/t/jobs/j"), "/data/jobs/t/j/model.npz");
  EXPECT_EQ(directory.ScriptFile("tenants/t/jobs/j"), "/data/jobs/t/j/model.pt");
}

}  // namespace
}  // namespace dpar
