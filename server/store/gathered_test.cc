// Transactions that announce what they read, which PostgreSQL's engine gathers into one. What holds for callers holds
// on both engines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
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
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

constexpr int kThreads = 30;

class GatheredTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    Make("CREATE TABLE cells (name TEXT PRIMARY KEY, value BIGINT NOT NULL, note TEXT)");
    Make("CREATE TABLE marks (id BIGINT PRIMARY KEY, real DOUBLE PRECISION, note TEXT)");
    for (int i = 0; i < kThreads; ++i) {
      Make(absl::StrCat("INSERT INTO cells VALUES ('", NameOf(i), "', 0, NULL)"));
    }
  }

  void Make(const std::string& sql) {
    ASSERT_TRUE(store_.database().Write([&](Transaction& t) { return t.Execute(sql, {}).status(); }).ok());
  }
  std::vector<Row> Rows(const std::string& sql) {
    absl::StatusOr<std::vector<Row>> rows =
        ReadFrom(store_.database(), [&](Transaction& t) { return t.Query(sql, {}); });
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : std::vector<Row>();
  }
  int64_t Count(const std::string& sql) { return RowReader(Rows(sql).at(0)).Int(); }

  static std::string NameOf(int i) { return absl::StrCat("c", i); }
  static std::string CellText(const Transaction& t) {
    return absl::StrCat("SELECT value FROM cells WHERE name = $1", t.for_update());
  }
  static absl::Status LockCellAhead(Transaction& t, const std::string& name) {
    return t.LockAhead(Guard::kBudget, name, CellText(t));
  }
  static absl::StatusOr<int64_t> LockCell(Transaction& t, const std::string& name) {
    DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query(CellText(t), {name}));
    if (rows.empty()) {
      return absl::NotFoundError(name);
    }
    RowReader reader(rows[0]);
    const int64_t value = reader.Int();
    DPAR_RETURN_IF_ERROR(reader.status());
    return value;
  }
  static absl::Status SetCell(Transaction& t, const std::string& name, int64_t value) {
    return t.ExecuteLater("UPDATE cells SET value = $2 WHERE name = $1", {name, value}, absl::DataLossError(name));
  }
  static absl::Status Mark(Transaction& t, int64_t id, const Value& note) {
    return t.ExecuteLater("INSERT INTO marks (id, real, note) VALUES ($1, $2, $3)", {id, 1.0 / 3, note},
                          absl::DataLossError("no mark"));
  }
  // Adds 1 to a cell that it holds, and then does what `more` does.
  absl::Status Increase(
      const std::string& name, const Database::Body& more = [](Transaction&) { return absl::OkStatus(); }) {
    return store_.database().WriteGathered([&](Transaction& t) { return LockCellAhead(t, name); },
                                           [&](Transaction& t) -> absl::Status {
                                             DPAR_ASSIGN_OR_RETURN(const int64_t value, LockCell(t, name));
                                             DPAR_RETURN_IF_ERROR(SetCell(t, name, value + 1));
                                             return more(t);
                                           });
  }

  static void InThreads(const std::function<void(int)>& run, int count = kThreads) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&run, i] { run(i); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  TemporaryStore store_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Engines, GatheredTest, ::testing::ValuesIn(Engines()), EngineName);

TEST_P(GatheredTest, NoChangeIsLostOnDistinctGuardsOrOnSharedOnes) {
  constexpr int kRounds = 20;
  for (const int cells : {kThreads, 4, 1}) {
    Make("UPDATE cells SET value = 0");
    InThreads([&](int i) {
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_EQ(Increase(NameOf(i % cells)), absl::OkStatus());
      }
    });
    EXPECT_EQ(Count("SELECT CAST(SUM(value) AS BIGINT) FROM cells"), kThreads * kRounds) << cells << " cells";
  }
}

TEST_P(GatheredTest, WhatOneFailsWithIsItsOwn) {
  std::vector<std::string> outcomes(kThreads);
  InThreads([&](int i) {
    std::string& outcome = outcomes[static_cast<size_t>(i)];
    try {
      const absl::Status status = Increase(NameOf(i), [&](Transaction& t) -> absl::Status {
        switch (i % 6) {
          case 1:
            return absl::NotFoundError("refused");
          case 2:
            throw std::runtime_error("thrown");
          case 3:  // a violated constraint
            return Mark(t, 7, "seven");
          case 4:  // a change of no row
            return t.ExecuteLater("UPDATE cells SET value = 0 WHERE name = $1", {"nobody"},
                                  absl::DataLossError("none"));
          case 5:  // what was not announced
            return t.Execute("INSERT INTO marks (id) VALUES ($1)", {int64_t{100 + i}}).status();
          default:
            return absl::OkStatus();
        }
      });
      outcome = absl::IsAlreadyExists(status) ? "exists" : std::string(status.message());
    } catch (const std::runtime_error& error) {
      outcome = error.what();
    }
  });
  int marked = 0;
  for (size_t i = 0; i < kThreads; ++i) {
    if (i % 6 == 3) {
      marked += outcomes[i].empty() ? 1 : 0;
      EXPECT_THAT(outcomes[i], ::testing::AnyOf("", "exists")) << i;
    } else {
      const std::vector<std::string> expected = {"", "refused", "thrown", "", "none", ""};
      EXPECT_EQ(outcomes[i], expected[i % 6]) << i;
    }
    const bool written = outcomes[i].empty();
    EXPECT_EQ(Count(absl::StrCat("SELECT value FROM cells WHERE name = 'c", i, "'")), written ? 1 : 0) << i;
  }
  EXPECT_EQ(marked, 1);
  EXPECT_EQ(Count("SELECT COUNT(*) FROM marks"), 1 + kThreads / 6);
}

TEST_P(GatheredTest, ValuesComeBackAsTheyWere) {
  const std::vector<Value> notes = {std::string(),
                                    std::string("NULL"),
                                    std::monostate{},
                                    std::string("\"quoted\", {braces} and \\ backslashes \\\""),
                                    std::string("line\nbreak\ttab"),
                                    std::string("h\xc3\xa9llo \xe2\x82\xac"),
                                    std::string(20'000, '\\')};
  InThreads([&](int i) {
    EXPECT_EQ(
        Increase(NameOf(i), [&](Transaction& t) { return Mark(t, i, notes[static_cast<size_t>(i) % notes.size()]); }),
        absl::OkStatus());
  });
  const std::vector<Row> rows = Rows("SELECT id, real, note FROM marks ORDER BY id");
  ASSERT_EQ(rows.size(), static_cast<size_t>(kThreads));
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i], (Row{static_cast<int64_t>(i), 1.0 / 3, notes[i % notes.size()]})) << i;
  }
}

TEST_P(GatheredTest, ChangesOfOneTransactionThatAreAlikeAreAllMade) {
  const std::vector<Value> notes = {std::string("one"), std::monostate{}, std::string("three")};
  ASSERT_TRUE(store_.database()
                  .Write([&](Transaction& t) -> absl::Status {
                    for (size_t i = 0; i < notes.size(); ++i) {
                      DPAR_RETURN_IF_ERROR(Mark(t, static_cast<int64_t>(i), notes[i]));
                    }
                    for (int i = 0; i < 3; ++i) {
                      DPAR_RETURN_IF_ERROR(SetCell(t, NameOf(i), 5 + i));
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(Rows("SELECT note FROM marks ORDER BY id"), ElementsAre(Row{notes[0]}, Row{notes[1]}, Row{notes[2]}));
  EXPECT_THAT(Rows("SELECT value FROM cells WHERE value > 0 ORDER BY name"),
              ElementsAre(Row{int64_t{5}}, Row{int64_t{6}}, Row{int64_t{7}}));
  const absl::Status missing = store_.database().Write([&](Transaction& t) -> absl::Status {
    DPAR_RETURN_IF_ERROR(SetCell(t, NameOf(0), 9));
    // Whatever the body makes of it.
    SetCell(t, "nobody", 9).IgnoreError();
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_EQ(Count("SELECT COUNT(*) FROM cells WHERE value = 9"), 0);
}

TEST_P(GatheredTest, AnswersToQueriesThatAreAlikeAreNotMixedUp) {
  ASSERT_TRUE(store_.database()
                  .Write([&](Transaction& t) -> absl::Status {
                    for (int i = 0; i < kThreads; ++i) {
                      DPAR_RETURN_IF_ERROR(SetCell(t, NameOf(i), i));
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  // No row for the first, one for the second, and so on.
  const std::string ask = "SELECT name, value FROM cells WHERE value < $1 ORDER BY value";
  InThreads([&](int i) {
    std::vector<Row> rows;
    EXPECT_EQ(store_.database().WriteGathered([&](Transaction& t) { return t.QueryAhead(ask, {int64_t{i}}); },
                                              [&](Transaction& t) -> absl::Status {
                                                DPAR_ASSIGN_OR_RETURN(rows, t.Query(ask, {int64_t{i}}));
                                                return Mark(t, i, absl::StrCat(rows.size()));
                                              }),
              absl::OkStatus());
    ASSERT_EQ(rows.size(), static_cast<size_t>(i));
    for (size_t k = 0; k < rows.size(); ++k) {
      EXPECT_EQ(rows[k], (Row{NameOf(static_cast<int>(k)), static_cast<int64_t>(k)}));
    }
  });
  EXPECT_EQ(Count("SELECT COUNT(*) FROM marks"), kThreads);
}

TEST_P(GatheredTest, AGuardThatIsNotThereIsSeenAsSuch) {
  std::vector<absl::Status> outcomes(kThreads);
  InThreads([&](int i) { outcomes[static_cast<size_t>(i)] = Increase(i % 2 == 0 ? NameOf(i) : "nobody"); });
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(outcomes[i], i % 2 == 0 ? absl::OkStatus() : absl::NotFoundError("nobody")) << i;
  }
}

TEST_P(GatheredTest, AGuardThatIsHeldElsewhereHoldsUpNobodyElse) {
  if (GetParam() == Engine::kSqlite) {
    GTEST_SKIP() << "one transaction writes at a time";
  }
  absl::Notification held;
  absl::Notification others_done;
  std::atomic<bool> waited = false;
  std::thread holder([&] {
    EXPECT_EQ(store_.OpenAgain()->Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(LockCell(t, NameOf(0)).status());
      held.Notify();
      others_done.WaitForNotification();
      waited = true;
      return SetCell(t, NameOf(0), 10);
    }),
              absl::OkStatus());
  });
  held.WaitForNotification();
  std::atomic<int> left = kThreads - 1;
  InThreads([&](int i) {
    EXPECT_EQ(Increase(NameOf(i)), absl::OkStatus());
    if (i != 0 && --left == 0) {
      others_done.Notify();
    }
    EXPECT_TRUE(i != 0 || waited) << "it went before the one that held its guard";
  });
  holder.join();
  EXPECT_EQ(Count("SELECT value FROM cells WHERE name = 'c0'"), 11);
}

TEST_P(GatheredTest, ASlowBodyHoldsUpNobodyElseForLong) {
  if (GetParam() == Engine::kSqlite) {
    GTEST_SKIP() << "one transaction writes at a time";
  }
  absl::Notification running;
  absl::Notification others_done;
  std::thread slow([&] {
    EXPECT_EQ(Increase(NameOf(0),
                       [&](Transaction&) {
                         running.Notify();
                         EXPECT_TRUE(others_done.WaitForNotificationWithTimeout(absl::Seconds(30)));
                         return absl::OkStatus();
                       }),
              absl::OkStatus());
  });
  running.WaitForNotification();
  // Fewer than make a second group.
  InThreads([&](int i) { EXPECT_EQ(Increase(NameOf(1 + i)), absl::OkStatus()); }, 3);
  others_done.Notify();
  slow.join();
  EXPECT_EQ(Count("SELECT CAST(SUM(value) AS BIGINT) FROM cells"), 4);
}

TEST_P(GatheredTest, ALimitCountsThoseThatAreCommittedTogether) {
  // So few that there is no second group: those that wait while one goes come after it, together.
  constexpr int kCallers = 4;
  constexpr int64_t kLimit = 2;
  const std::string ask = "SELECT COUNT(*) FROM marks WHERE id >= $1";
  for (int round = 0; round < 20; ++round) {
    Make("DELETE FROM marks");
    std::atomic<int> admitted = 0;
    InThreads(
        [&](int i) {
          const absl::Status status = store_.database().WriteGathered(
              [&](Transaction& t) { return t.QueryAhead(ask, {int64_t{0}}); },
              [&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, t.Query(ask, {int64_t{0}}));
                if (RowReader(rows.at(0)).Int() + t.CountUnseen("marks") >= kLimit) {
                  return absl::ResourceExhaustedError("full");
                }
                // One that is refused for another reason takes nobody's place.
                return i == 3 ? absl::CancelledError("not me") : Mark(t, i, "");
              });
          admitted += status.ok() ? 1 : 0;
        },
        kCallers);
    EXPECT_EQ(admitted, kLimit) << "round " << round;
    EXPECT_EQ(Count("SELECT COUNT(*) FROM marks"), kLimit) << "round " << round;
  }
}

TEST_P(GatheredTest, NoticesFollowCommits) {
  absl::Mutex mutex;
  std::vector<std::string> heard;
  store_.database().Listen([&](const std::string& notice) {
    const absl::MutexLock lock(&mutex);
    if (!notice.empty()) {
      heard.push_back(notice);
    }
  });
  absl::SleepFor(absl::Milliseconds(200));  // for the listener to be there
  std::vector<std::string> told;
  for (int i = 0; i < kThreads; i += 2) {
    told.push_back(NameOf(i));
  }
  InThreads([&](int i) {
    Increase(NameOf(i), [&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(t.Notify(NameOf(i)));
      return i % 2 == 0 ? absl::OkStatus() : absl::CancelledError("refused");
    }).IgnoreError();
  });
  {
    const absl::MutexLock lock(&mutex);
    const auto has_all = [&] { return heard.size() >= told.size(); };
    mutex.AwaitWithTimeout(absl::Condition(&has_all), absl::Seconds(10));
    EXPECT_THAT(heard, UnorderedElementsAreArray(told));
  }
  store_.database().Listen(nullptr);
}

}  // namespace
}  // namespace dpar
