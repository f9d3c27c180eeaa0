#include "server/uploads/janitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/digest.h"
#include "server/store/once.h"
#include "server/uploads/testing/uploads_fixture.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::IsEmpty;
using testing::kNow;

constexpr absl::Duration kDay = absl::Hours(24);

class JanitorTest : public testing::UploadsTest {
 protected:
  // A round at a time, by a janitor with the limits as they are now.
  void RoundAt(absl::Time time) {
    Janitor janitor(*database_, *uploads_, limits_, [time] { return time; });
    const absl::Status status = janitor.MakeRound();
    EXPECT_TRUE(status.ok()) << status;
  }
  std::string OpenWithBytes(const std::string& tenant, const std::string& dataset) {
    v1::OpenUploadRequest request = Declaration(dataset, "open-" + dataset);
    request.set_parent("tenants/" + tenant);
    std::string name = Open(request).value().name();
    EXPECT_TRUE(Write(name, 0, "x").ok());
    return name;
  }
  v1::Upload::State StateOf(const std::string& name) { return uploads_->Get(name).value().state(); }
  int64_t CountAnswers() {
    int64_t count = 0;
    EXPECT_TRUE(database_
                    ->Read([&](Transaction& t) -> absl::Status {
                      const std::vector<Row> rows = t.Query("SELECT COUNT(*) FROM answers", {}).value();
                      RowReader reader(rows.at(0));
                      count = reader.Int();
                      return reader.status();
                    })
                    .ok());
    return count;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, JanitorTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

TEST_P(JanitorTest, AnAbandonedUploadOfAnyTenantIsRefusedAndItsBytesAreRemoved) {
  const std::string first = OpenWithBytes("acme", "a");
  const std::string second = OpenWithBytes("other", "b");
  RoundAt(kNow + 7 * kDay);
  EXPECT_EQ(StateOf(first), v1::Upload::OPEN) << "at its expire_time it is open still";
  RoundAt(kNow + 7 * kDay + absl::Seconds(1));
  EXPECT_EQ(StateOf(first), v1::Upload::REFUSED);
  EXPECT_EQ(StateOf(second), v1::Upload::REFUSED);
  EXPECT_THAT(FilesBelow("uploads"), IsEmpty());
  ExpectError(Write(first, 1, "y").status(), absl::StatusCode::kFailedPrecondition, "UPLOAD_INCOMPLETE");
}

TEST_P(JanitorTest, HowLongAnUploadLivesIsALimit) {
  limits_.upload_life_days = 1;
  Restart();
  const std::string name = OpenWithBytes("acme", "a");
  EXPECT_EQ(uploads_->Get(name).value().expire_time().seconds(), absl::ToUnixSeconds(kNow + kDay));
  RoundAt(kNow + kDay + absl::Seconds(1));
  EXPECT_EQ(StateOf(name), v1::Upload::REFUSED);
}

TEST_P(JanitorTest, MoreUploadsThanFitIntoOneQueryAreAllRefused) {
  limits_.max_open_uploads = 300;
  Restart();
  for (int i = 0; i < 250; ++i) {
    ASSERT_TRUE(Open(Declaration(absl::StrCat("d", i), absl::StrCat("open-", i))).ok());
  }
  RoundAt(kNow + 8 * kDay);
  const auto left =
      ReadFrom(*database_, [](Transaction& t) { return OpenUploadsBefore(t, "", absl::InfiniteFuture(), "", 1); });
  EXPECT_THAT(left.value(), IsEmpty());
}

TEST_P(JanitorTest, AnUploadThatSomebodyWritesToIsLeftUntilTheNextRound) {
  const std::string name = OpenWithBytes("acme", "a");
  auto writer = uploads_->StartWriting(name, 1).value();
  RoundAt(kNow + 8 * kDay);
  EXPECT_EQ(StateOf(name), v1::Upload::OPEN);
  writer.reset();
  RoundAt(kNow + 8 * kDay);
  EXPECT_EQ(StateOf(name), v1::Upload::REFUSED);
}

TEST_P(JanitorTest, FinishedUploadsAndDatasetsStay) {
  ASSERT_TRUE(Upload("d").ok());
  RoundAt(kNow + 1000 * kDay);
  EXPECT_EQ(StateOf(last_), v1::Upload::FINISHED);
  EXPECT_TRUE(DatasetStatus("d").ok());
  EXPECT_THAT(FilesBelow("datasets"), ElementsAre(directory_->DatasetFile("tenants/acme/datasets/d")));
}

TEST_P(JanitorTest, AnAnswerIsRememberedForItsTimeAndThenForgottenWithItsDigestKey) {
  limits_.request_memory_days = 2;
  limits_.upload_life_days = 30;
  Restart();
  const std::string key = Upload("d").value().digest_key();
  RoundAt(kNow + 2 * kDay);
  EXPECT_EQ(Finish(last_, Sha256Hex(bytes_), "finish-open-d").value().digest_key(), key);
  RoundAt(kNow + 2 * kDay + absl::Seconds(1));
  EXPECT_EQ(CountAnswers(), 0);
  ExpectError(Finish(last_, Sha256Hex(bytes_), "finish-open-d").status(), absl::StatusCode::kFailedPrecondition,
              "UPLOAD_INCOMPLETE");
}

TEST_P(JanitorTest, ManyOldAnswersAreForgottenInOneRoundAndYoungOnesKept) {
  ASSERT_TRUE(database_
                  ->Write([](Transaction& t) -> absl::Status {
                    for (int i = 0; i < 1201; ++i) {
                      const bool claimed =
                          ClaimAnswer(t, "tenants/acme:Test", absl::StrCat(i), "f", kNow + absl::Seconds(i)).value();
                      EXPECT_TRUE(claimed);
                    }
                    return absl::OkStatus();
                  })
                  .ok());
  // Those of the first 1,200 seconds are older than a week.
  RoundAt(kNow + absl::Seconds(1200) + 7 * kDay);
  EXPECT_EQ(CountAnswers(), 1);
  int64_t forgotten = -1;
  ASSERT_TRUE(database_
                  ->Write([&](Transaction& t) -> absl::Status {
                    forgotten = ForgetAnswers(t, kNow + absl::Seconds(1201), 0).value();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(forgotten, 0) << "never more than asked for";
}

TEST_P(JanitorTest, MakesRoundsOfItselfUntilItIsDestroyed) {
  const std::string name = OpenWithBytes("acme", "a");
  std::atomic<int64_t> days = 0;
  std::optional<Janitor> janitor;
  janitor.emplace(*database_, *uploads_, limits_, [&days] { return kNow + days.load() * kDay; });
  janitor->Start(absl::Milliseconds(5));
  days = 8;
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (StateOf(name) != v1::Upload::REFUSED && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(StateOf(name), v1::Upload::REFUSED);
  janitor.reset();
  const std::string later = OpenWithBytes("acme", "b");
  EXPECT_EQ(StateOf(later), v1::Upload::OPEN);
}

}  // namespace
}  // namespace dpar
