#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/mutex.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"
#include "server/store/testing/store_fixture.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

using ::dpar::testing::Engine;
using ::dpar::testing::EngineName;
using ::dpar::testing::Engines;
using ::dpar::testing::kNow;
using ::dpar::testing::Reason;
using ::dpar::testing::StoreTest;
using ::dpar::testing::TemporaryStore;

INSTANTIATE_TEST_SUITE_P(Engines, StoreTest, ::testing::ValuesIn(Engines()), EngineName);

TEST_P(StoreTest, ValuesOfEveryTypeComeBackExactly) {
  const std::string text = "caf\xc3\xa9 \x01 'quoted' $1";
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

TEST_P(StoreTest, WhatAnEngineCouldNotGiveBackIsNotStored) {
  ASSERT_TRUE(
      Write([](Transaction& t) { return t.Execute("CREATE TABLE v (a DOUBLE PRECISION, b TEXT)", {}).status(); }).ok());
  const auto insert = [&](double number, const std::string& text) {
    return Write([&](Transaction& t) { return t.Execute("INSERT INTO v VALUES ($1, $2)", {number, text}).status(); });
  };
  EXPECT_EQ(Reason(insert(std::numeric_limits<double>::quiet_NaN(), "")), "INVALID_FIELD");
  EXPECT_EQ(Reason(insert(-std::numeric_limits<double>::infinity(), "")), "INVALID_FIELD");
  EXPECT_EQ(Reason(insert(0, std::string("a\0b", 3))), "INVALID_FIELD");
  EXPECT_TRUE(insert(-0x1.fffffffffffffp-1022, "").ok());
  ASSERT_TRUE(store_.database()
                  .Read([](Transaction& t) -> absl::Status {
                    DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query("SELECT a FROM v", {}));
                    EXPECT_EQ(rows.size(), 1U);
                    RowReader reader(rows.at(0));
                    EXPECT_EQ(reader.Real(), -0x1.fffffffffffffp-1022);
                    return reader.status();
                  })
                  .ok());
}

TEST_P(StoreTest, AViolatedConstraintIsSaidAndLeavesNothing) {
  AddTenant("a");
  const absl::Status twice = Write([](Transaction& t) -> absl::Status {
    DPAR_RETURN_IF_ERROR(InsertTenant(t, "b", "k", kNow));
    return t.Execute("INSERT INTO tenants (name, content_key, create_time) VALUES ('tenants/a', '', 1)", {}).status();
  });
  EXPECT_EQ(twice.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Write([](Transaction& t) { return InsertTenant(t, "b", "k", kNow); }).ok());
}

TEST_P(StoreTest, ABodyThatHidesAFailedStatementIsNotCommittedAsIfItHadNot) {
  // PostgreSQL answers the commit of such a transaction by a rollback; SQLite undoes the statement alone.
  const absl::Status status = Write([](Transaction& t) -> absl::Status {
    DPAR_RETURN_IF_ERROR(InsertTenant(t, "b", "k", kNow));
    EXPECT_FALSE(t.Execute("INSERT INTO no_such_table VALUES (1)", {}).ok());
    return absl::OkStatus();
  });
  int64_t tenants = -1;
  ASSERT_TRUE(store_.database()
                  .Read([&](Transaction& t) -> absl::Status {
                    DPAR_ASSIGN_OR_RETURN(const TenantPage page, ListTenants(t, 10, ""));
                    tenants = static_cast<int64_t>(page.tenants.size());
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(status.ok(), tenants == 1) << "what is said is what was done";
}

TEST_P(StoreTest, AChangeThatWasToTouchOneRowAndDidNotIsRefused) {
  ASSERT_TRUE(Write([](Transaction& t) { return t.Execute("CREATE TABLE v (a BIGINT)", {}).status(); }).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return t.Execute("INSERT INTO v VALUES (1), (2)", {}).status(); }).ok());
  const absl::Status otherwise = absl::DataLossError("not one row");
  const auto set_where = [&](const std::string& condition) {
    return Write([&](Transaction& t) { return t.ExecuteOne("UPDATE v SET a = a WHERE " + condition, {}, otherwise); });
  };
  EXPECT_EQ(set_where("a = 3"), otherwise) << "none";
  EXPECT_EQ(set_where("a > 0"), otherwise) << "two";
  EXPECT_EQ(set_where("a = 2"), absl::OkStatus());
}

TEST_P(StoreTest, AReadSeesOneSnapshotWhileOthersWrite) {
  ASSERT_TRUE(store_.database()
                  .Read([&](Transaction& t) -> absl::Status {
                    DPAR_ASSIGN_OR_RETURN(const TenantPage before, ListTenants(t, 10, ""));
                    EXPECT_TRUE(before.tenants.empty());
                    AddTenant("later");
                    DPAR_ASSIGN_OR_RETURN(const TenantPage after, ListTenants(t, 10, ""));
                    EXPECT_TRUE(after.tenants.empty());
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST_P(StoreTest, NoticesAreHeardAfterTheCommitAndNotAfterARollback) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> heard;
  bool listening = false;
  store_.database().Listen([&](const std::string& notice) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (notice.empty()) {
      listening = true;
    } else {
      heard.push_back(notice);
    }
    changed.notify_all();
  });
  if (store_.database().shared()) {
    std::unique_lock<std::mutex> lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return listening; }));
  }
  EXPECT_FALSE(Write([](Transaction& t) -> absl::Status {
                 DPAR_RETURN_IF_ERROR(t.Notify("never"));
                 return absl::AbortedError("no");
               }).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return t.Notify("tenants/a/jobs/j"); }).ok());
  {
    std::unique_lock<std::mutex> lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(10), [&] { return !heard.empty(); }));
    EXPECT_THAT(heard, ::testing::ElementsAre("tenants/a/jobs/j"));
  }
  store_.database().Listen(nullptr);
}

TEST_P(StoreTest, NoticesOfABusyMomentAreAllHeard) {
  constexpr int kNotices = 200;
  Mutex mutex;
  std::set<std::string> heard;
  store_.database().Listen([&](const std::string& notice) {
    const MutexLock lock(&mutex);
    heard.insert(notice);
  });
  const auto await = [&](const std::function<bool()>& condition) {
    const MutexLock lock(&mutex);
    return mutex.AwaitWithTimeout(Condition(&condition), absl::Seconds(10));
  };
  if (store_.database().shared()) {
    ASSERT_TRUE(await([&] { return heard.contains(""); })) << "nobody listens yet";
  }
  for (int i = 0; i < kNotices; ++i) {
    ASSERT_TRUE(Write([&](Transaction& t) { return t.Notify(absl::StrCat("notice ", i)); }).ok());
  }
  EXPECT_TRUE(await([&] { return heard.contains(absl::StrCat("notice ", kNotices - 1)); }));
  store_.database().Listen(nullptr);
  heard.erase("");
  EXPECT_EQ(heard.size(), static_cast<size_t>(kNotices));
}

TEST_P(StoreTest, ANameIsHeldByOneCallerAtATime) {
  const std::unique_ptr<Database> other = GetParam() == Engine::kPostgres ? store_.OpenAgain() : nullptr;
  Database& second = other == nullptr ? store_.database() : *other;
  absl::StatusOr<std::unique_ptr<NameHold>> hold = store_.database().Hold("n", absl::ZeroDuration());
  ASSERT_TRUE(hold.ok());
  EXPECT_EQ(Reason(second.Hold("n", absl::Milliseconds(50)).status()), "SERVER_UNAVAILABLE");
  EXPECT_TRUE(second.Hold("m", absl::ZeroDuration()).ok());
  hold->reset();
  EXPECT_TRUE(second.Hold("n", absl::ZeroDuration()).ok());
}

TEST_P(StoreTest, SumsKeepAll64Bits) {
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(t.Execute("CREATE TABLE v (a BIGINT)", {}).status());
                DPAR_RETURN_IF_ERROR(t.Execute("INSERT INTO v VALUES ($1), ($1)", {int64_t{1} << 40}).status());
                DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query("SELECT CAST(SUM(a) AS BIGINT) FROM v", {}));
                RowReader reader(rows.at(0));
                EXPECT_EQ(reader.Int(), int64_t{1} << 41);
                return reader.status();
              }).ok());
}

TEST_P(StoreTest, AColumnOfAnotherTypeIsDataLoss) {
  const Row row = {std::string("text")};
  RowReader reader(row);
  EXPECT_EQ(reader.Int(), 0);
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Reason(reader.status()), "STORE_CORRUPT");
}

TEST_P(StoreTest, AColumnThatIsNotThereIsDataLoss) {
  const Row row;
  RowReader reader(row);
  EXPECT_EQ(reader.Text(), "");
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss);
}

TEST_P(StoreTest, AFailedBodyLeavesNothing) {
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

TEST_P(StoreTest, WritersBehindOneGuardDoNotLoseUpdates) {
  AddTenant("guard");
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
          DPAR_RETURN_IF_ERROR(t.Lock(Guard::kTenant, "tenants/guard"));
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

TEST_P(StoreTest, MigratingTwiceChangesNothing) { EXPECT_TRUE(Migrate(store_.database()).ok()); }

TEST_P(StoreTest, AStoreRunsTheStepsThatItLacksAndKeepsWhatItHolds) {
  const std::unique_ptr<Database> database = store_.OpenAgain();
  ASSERT_TRUE(Write([](Transaction& t) { return t.Execute("DELETE FROM schema_version", {}).status(); }).ok());
  const SchemaStep first = {"CREATE TABLE v (a BIGINT); INSERT INTO v (a) VALUES (1)", ""};
  const SchemaStep second = {"ALTER TABLE v ADD COLUMN b BIGINT NOT NULL DEFAULT 2", "UPDATE v SET b = 3"};
  ASSERT_TRUE(MigrateBy(*database, {first}).ok());
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE(MigrateBy(*database, {first, second}).ok());
    EXPECT_TRUE(database
                    ->Read([&](Transaction& t) -> absl::Status {
                      DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query("SELECT a, b FROM v", {}));
                      const int64_t b = GetParam() == Engine::kPostgres ? 3 : 2;
                      EXPECT_THAT(rows, ::testing::ElementsAre(Row{int64_t{1}, b}));
                      return absl::OkStatus();
                    })
                    .ok());
  }
  EXPECT_EQ(MigrateBy(*database, {first}).code(), absl::StatusCode::kFailedPrecondition) << "newer than the program";
}

TEST_P(StoreTest, ASchemaFromTheFutureIsRefused) {
  ASSERT_TRUE(
      Write([](Transaction& t) { return t.Execute("UPDATE schema_version SET version = 99", {}).status(); }).ok());
  const absl::Status status = Migrate(store_.database());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("newer dpard"));
}

TEST_P(StoreTest, AFileThatIsNoDatabaseIsDataLoss) {
  const std::string path = store_.directory().root() + "/not-a-database";
  ASSERT_TRUE(WriteFileDurably(path, std::string(4096, 'x'), 0600).ok());
  EXPECT_EQ(OpenSqlite(path).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace dpar
