// Transactions of many threads that arrive together, which SQLite's engine commits together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status_macros.h"
#include "server/store/database.h"
#include "server/store/read_from.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using ::dpar::testing::Engine;
using ::dpar::testing::EngineName;
using ::dpar::testing::Engines;
using ::dpar::testing::TemporaryStore;
using ::testing::ElementsAreArray;
using ::testing::UnorderedElementsAreArray;

constexpr int kThreads = 30;
// For the threads that said that they are about to write, to do so. Without it they might not be one group, which
// changes nothing of what must hold.
constexpr absl::Duration kToArrive = absl::Milliseconds(100);

class GroupCommitTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override { Make("CREATE TABLE rows (id BIGINT PRIMARY KEY)"); }

  void Make(const std::string& sql) {
    ASSERT_TRUE(store_.database().Write([&](Transaction& t) { return t.Execute(sql, {}).status(); }).ok());
  }

  // Runs write(0), write(1), ... at once, while another transaction is open.
  void WriteTogether(const std::function<void(int)>& write) {
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    ASSERT_TRUE(store_.database()
                    .Write([&](Transaction& /*t*/) {
                      for (int i = 0; i < kThreads; ++i) {
                        threads.emplace_back([&, i] {
                          ++ready;
                          write(i);
                        });
                      }
                      while (ready < kThreads) {
                        absl::SleepFor(absl::Milliseconds(1));
                      }
                      absl::SleepFor(kToArrive);
                      return absl::OkStatus();
                    })
                    .ok());
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  std::vector<int64_t> Ids() {
    absl::StatusOr<std::vector<Row>> rows =
        ReadFrom(store_.database(), [&](Transaction& t) { return t.Query("SELECT id FROM rows ORDER BY id", {}); });
    EXPECT_TRUE(rows.ok());
    std::vector<int64_t> ids;
    for (const Row& row : *rows) {
      ids.push_back(RowReader(row).Int());
    }
    return ids;
  }

  TemporaryStore store_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Engines, GroupCommitTest, ::testing::ValuesIn(Engines()), EngineName);

absl::Status Insert(Transaction& transaction, int64_t id) {
  return transaction.Execute("INSERT INTO rows (id) VALUES ($1)", {id}).status();
}

TEST_P(GroupCommitTest, WhatOneFailsWithIsItsOwn) {
  std::vector<std::string> outcomes(kThreads);
  WriteTogether([&](int i) {
    try {
      const absl::Status status = store_.database().Write([&](Transaction& t) -> absl::Status {
        DPAR_RETURN_IF_ERROR(Insert(t, i));
        if (i % 3 == 1) {
          return absl::NotFoundError("refused");
        }
        if (i % 3 == 2) {
          throw std::runtime_error("thrown");
        }
        return absl::OkStatus();
      });
      outcomes[static_cast<size_t>(i)] = status.ok() ? "written" : std::string(status.message());
    } catch (const std::runtime_error& error) {
      outcomes[static_cast<size_t>(i)] = error.what();
    }
  });
  std::vector<int64_t> written;
  const std::vector<std::string> expected = {"written", "refused", "thrown"};
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(outcomes[i], expected[i % 3]);
    if (i % 3 == 0) {
      written.push_back(static_cast<int64_t>(i));
    }
  }
  EXPECT_THAT(Ids(), ElementsAreArray(written));
}

TEST_P(GroupCommitTest, AViolatedConstraintIsItsOwn) {
  std::vector<absl::Status> outcomes(kThreads);
  WriteTogether([&](int i) {
    outcomes[static_cast<size_t>(i)] =
        store_.database().Write([&](Transaction& t) { return Insert(t, i / 2); });  // two threads want each
  });
  std::vector<int64_t> expected;
  for (int i = 0; i < kThreads / 2; ++i) {
    expected.push_back(i);
  }
  EXPECT_THAT(Ids(), ElementsAreArray(expected));
  EXPECT_EQ(std::count_if(outcomes.begin(), outcomes.end(), absl::IsAlreadyExists), kThreads / 2);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), absl::OkStatus()), kThreads / 2);
}

TEST(GroupCommit, EachSeesThoseBeforeItAndNoticesFollowCommits) {
  TemporaryStore store;
  Database& database = store.database();
  std::vector<std::string> heard;
  database.Listen([&](const std::string& notice) { heard.push_back(notice); });
  ASSERT_TRUE(
      database
          .Write([](Transaction& t) { return t.Execute("CREATE TABLE counted (id BIGINT PRIMARY KEY)", {}).status(); })
          .ok());
  std::vector<std::thread> threads;
  std::vector<std::string> told;
  for (int i = 0; i < kThreads; ++i) {
    const bool refused = i % 2 == 1;
    if (!refused) {
      told.push_back(absl::StrCat("thread ", i));
    }
    threads.emplace_back([&database, refused, i] {
      database
          .Write([&](Transaction& t) -> absl::Status {
            DPAR_RETURN_IF_ERROR(
                t.Execute("INSERT INTO counted (id) SELECT COALESCE(MAX(id), 0) + 1 FROM counted", {}).status());
            DPAR_RETURN_IF_ERROR(t.Notify(absl::StrCat("thread ", i)));
            return refused ? absl::CancelledError("refused") : absl::OkStatus();
          })
          .IgnoreError();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  database.Listen(nullptr);
  absl::StatusOr<std::vector<Row>> rows =
      ReadFrom(database, [](Transaction& t) { return t.Query("SELECT COUNT(*), MIN(id), MAX(id) FROM counted", {}); });
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->at(0), (Row{int64_t{kThreads / 2}, int64_t{1}, int64_t{kThreads / 2}}));
  EXPECT_THAT(heard, UnorderedElementsAreArray(told));
}

// A commit that fails: a deferred reference to nothing. Whoever was in the group hears that nothing happened.
TEST(GroupCommit, NobodyIsToldThatItHappenedWhenTheCommitFails) {
  TemporaryStore store;
  Database& database = store.database();
  const auto make = [&database](const std::string& sql) {
    ASSERT_TRUE(database.Write([&](Transaction& t) { return t.Execute(sql, {}).status(); }).ok());
  };
  make("CREATE TABLE parents (id BIGINT PRIMARY KEY)");
  make(
      "CREATE TABLE rows (id BIGINT PRIMARY KEY, parent BIGINT REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)");
  std::vector<absl::Status> outcomes(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const char* const sql = i % 10 == 0 ? "INSERT INTO rows (id, parent) VALUES ($1, 7)"
                                          : "INSERT INTO rows (id, parent) VALUES ($1, NULL)";
      outcomes[static_cast<size_t>(i)] =
          database.Write([&](Transaction& t) { return t.Execute(sql, {int64_t{i}}).status(); });
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  absl::StatusOr<std::vector<Row>> rows =
      ReadFrom(database, [](Transaction& t) { return t.Query("SELECT id FROM rows", {}); });
  ASSERT_TRUE(rows.ok());
  std::set<int64_t> written;
  for (const Row& row : *rows) {
    written.insert(RowReader(row).Int());
  }
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(outcomes[static_cast<size_t>(i)].ok(), written.contains(i)) << i;
    EXPECT_TRUE(i % 10 != 0 || !written.contains(i)) << i;
  }
  make("INSERT INTO rows (id) VALUES (1000)");  // the store goes on
}

}  // namespace
}  // namespace dpar
