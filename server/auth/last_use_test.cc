#include "server/auth/last_use.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/time/clock.h"
#include "server/store/testing/temporary_store.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

// The start of a minute.
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'040);

// Counts the transactions that write, and refuses them while it is told to.
class CountingDatabase final : public Database {
 public:
  explicit CountingDatabase(Database& database) : database_(database) {}
  absl::Status Write(const Body& body) override {
    ++writes;
    return failing ? absl::UnavailableError("the disk is full") : database_.Write(body);
  }
  absl::Status Read(const Body& body) override { return database_.Read(body); }
  absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, absl::Duration patience) override {
    return database_.Hold(name, patience);
  }
  void Listen(Listener listener) override { database_.Listen(std::move(listener)); }
  [[nodiscard]] bool shared() const override { return database_.shared(); }

  int writes = 0;
  bool failing = false;

 private:
  Database& database_;
};

class LastUseTest : public ::testing::TestWithParam<testing::Engine> {
 protected:
  void SetUp() override {
    for (const char* id : {"a", "b"}) {
      StoredToken stored;
      stored.token.set_name(std::string("operator/tokens/") + id);
      stored.token.set_role(v1::OPERATOR);
      ASSERT_TRUE(store_.database().Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
    }
  }
  // Seconds after kNow; nothing when the token was never used.
  std::optional<int64_t> LastUse(const std::string& id) {
    std::optional<int64_t> seconds;
    EXPECT_TRUE(store_.database()
                    .Read([&](Transaction& t) {
                      const v1::Token token = GetToken(t, id).value().token;
                      if (token.has_last_use_time()) {
                        seconds = token.last_use_time().seconds() - absl::ToUnixSeconds(kNow);
                      }
                      return absl::OkStatus();
                    })
                    .ok());
    return seconds;
  }

  testing::TemporaryStore store_{GetParam()};
  CountingDatabase database_{store_.database()};
};

INSTANTIATE_TEST_SUITE_P(Engines, LastUseTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

TEST_P(LastUseTest, AUseIsWrittenToTheMinute) {
  LastUseLog log(database_);
  log.Note("a", kNow + absl::Seconds(59));
  EXPECT_EQ(LastUse("a"), std::nullopt) << "not on the way of the call";
  ASSERT_TRUE(log.Flush().ok());
  EXPECT_EQ(LastUse("a"), 0);
  EXPECT_EQ(LastUse("b"), std::nullopt);
}

TEST_P(LastUseTest, ATokenIsWrittenOnceAMinuteHoweverOftenItIsUsed) {
  LastUseLog log(database_);
  for (int second = 0; second < 60; ++second) {
    log.Note("a", kNow + absl::Seconds(second));
    log.Note("b", kNow + absl::Seconds(second));
    ASSERT_TRUE(log.Flush().ok());
  }
  EXPECT_EQ(database_.writes, 1);
  log.Note("a", kNow + absl::Seconds(60));
  ASSERT_TRUE(log.Flush().ok());
  ASSERT_TRUE(log.Flush().ok());
  EXPECT_EQ(database_.writes, 2);
  EXPECT_EQ(LastUse("a"), 60);
  EXPECT_EQ(LastUse("b"), 0);
}

TEST_P(LastUseTest, WhatCannotBeWrittenIsWrittenLater) {
  LastUseLog log(database_);
  database_.failing = true;
  log.Note("a", kNow);
  log.Note("b", kNow);
  EXPECT_EQ(log.Flush().code(), absl::StatusCode::kUnavailable);
  log.Note("a", kNow + absl::Minutes(1));
  EXPECT_EQ(log.Flush().code(), absl::StatusCode::kUnavailable);
  database_.failing = false;
  ASSERT_TRUE(log.Flush().ok());
  EXPECT_EQ(LastUse("a"), 60);
  EXPECT_EQ(LastUse("b"), 0);
}

TEST_P(LastUseTest, AnEarlierUseDoesNotReplaceALaterOne) {
  LastUseLog here(database_);
  LastUseLog elsewhere(database_);
  elsewhere.Note("a", kNow + absl::Minutes(2));
  ASSERT_TRUE(elsewhere.Flush().ok());
  here.Note("a", kNow + absl::Minutes(1));
  ASSERT_TRUE(here.Flush().ok());
  EXPECT_EQ(LastUse("a"), 120);
}

TEST_P(LastUseTest, ATokenThatIsGoneIsNoError) {
  LastUseLog log(database_);
  log.Note("gone", kNow);
  EXPECT_TRUE(log.Flush().ok());
}

TEST_P(LastUseTest, TheThreadWritesOfItselfAndAtTheEnd) {
  {
    LastUseLog log(store_.database());
    log.Start();
    log.Note("a", kNow);
    const absl::Time deadline = absl::Now() + absl::Minutes(2);
    while (!LastUse("a").has_value() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(20));
    }
    EXPECT_EQ(LastUse("a"), 0);
    log.Note("b", kNow);
  }
  EXPECT_EQ(LastUse("b"), 0);
}

}  // namespace
}  // namespace dpar
