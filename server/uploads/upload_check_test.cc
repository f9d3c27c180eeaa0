// The check of a whole file: it shows how far it is, waits for its turn, and stops when nobody waits for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/certificate/digest.h"
#include "core/mutex.h"
#include "server/uploads/testing/uploads_fixture.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using testing::ExpectError;
using ::testing::IsEmpty;
using testing::kNow;

constexpr absl::Duration kPatience = absl::Seconds(60);

class CheckTest : public testing::UploadsTest {
 protected:
  // An upload with all its bytes.
  std::string Sent(const std::string& dataset) {
    std::string name = Open(Declaration(dataset, "open-" + dataset)).value().name();
    EXPECT_TRUE(Write(name, 0, bytes_).ok());
    return name;
  }
  // May be called from several threads.
  absl::StatusOr<v1::FinishUploadResponse> FinishIf(const std::string& name, const std::string& sha256,
                                                    const std::string& request_id,
                                                    const std::function<bool()>& wanted) {
    testing::FixedRandom random(std::hash<std::string>()(name));
    v1::FinishUploadRequest request;
    request.set_name(name);
    request.set_sha256(sha256);
    request.set_request_id(request_id);
    return uploads_->Finish(request, {"tenants/acme/tokens/t", kNow}, random, wanted);
  }
  std::string StageOf(const std::string& name) { return uploads_->Get(name).value().check().stage(); }
  void ExpectStillOpen(const std::string& name, const std::string& dataset) {
    const v1::Upload upload = uploads_->Get(name).value();
    EXPECT_EQ(upload.state(), v1::Upload::OPEN);
    EXPECT_EQ(upload.committed_offset(), static_cast<int64_t>(bytes_.size()));
    EXPECT_FALSE(upload.has_check());
    EXPECT_EQ(DatasetStatus(dataset).code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(FilesBelow("datasets"), IsEmpty());
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, CheckTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

TEST_P(CheckTest, GoesThroughItsStagesInOrderAndIsGoneAtTheEnd) {
  const std::string name = Sent("d");
  std::vector<std::string> stages;
  int64_t start = 0;
  const auto answer = FinishIf(name, Sha256Hex(bytes_), "f", [&] {
    const v1::Upload upload = uploads_->Get(name).value();
    EXPECT_EQ(upload.state(), v1::Upload::OPEN);
    EXPECT_GE(upload.check().fraction(), 0);
    EXPECT_LE(upload.check().fraction(), 1);
    start = upload.check().start_time().seconds();
    if (stages.empty() || stages.back() != upload.check().stage()) {
      stages.push_back(upload.check().stage());
    }
    return true;
  });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(stages, ElementsAre("waiting", "digest", "parsing", "validating", "fingerprint", "sealing"));
  EXPECT_EQ(start, absl::ToUnixSeconds(kNow));
  EXPECT_FALSE(uploads_->Get(name).value().has_check());
}

TEST_P(CheckTest, StopsAtEveryQuestionAndCanBeDoneAgainWithTheSameId) {
  const std::string name = Sent("d");
  int64_t questions = 0;
  for (int64_t stop_at = 1; stop_at <= 1000; ++stop_at) {
    int64_t asked = 0;
    const auto answer = FinishIf(name, Sha256Hex(bytes_), "f", [&] { return ++asked != stop_at; });
    if (answer.ok()) {
      questions = asked;
      break;
    }
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled) << answer.status();
    EXPECT_EQ(asked, stop_at) << "a no is final";
    ExpectStillOpen(name, "d");
  }
  EXPECT_GE(questions, 15);
  EXPECT_EQ(uploads_->Get(name).value().state(), v1::Upload::FINISHED);
  EXPECT_TRUE(DatasetStatus("d").ok());
}

TEST_P(CheckTest, WhatIsWrongWithAFileThatNobodyAsksAboutIsNotRecorded) {
  const std::string name = Sent("d");
  // The last question before the upload would be refused for its digest.
  int64_t asked = 0;
  ASSERT_EQ(FinishIf(Sent("e"), std::string(64, '0'), "count", [&] { return ++asked > 0; }).status().code(),
            absl::StatusCode::kInvalidArgument);
  const int64_t last = asked;
  asked = 0;
  const auto answer = FinishIf(name, std::string(64, '0'), "f", [&] { return ++asked != last; });
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
  ExpectStillOpen(name, "d");
  EXPECT_TRUE(FinishIf(name, Sha256Hex(bytes_), "g", [] { return true; }).ok());
}

TEST_P(CheckTest, OneRunsAtATimeAndTheOtherWaitsAndMayLeave) {
  const std::string first = Sent("first");
  const std::string second = Sent("second");
  Notification go_on;
  absl::StatusOr<v1::FinishUploadResponse> answer;
  std::thread running([&] {
    answer = FinishIf(first, Sha256Hex(bytes_), "first", [&] {
      if (StageOf(first) == "parsing") {
        go_on.WaitForNotification();
      }
      return true;
    });
  });
  const absl::Time deadline = absl::Now() + kPatience;
  while (StageOf(first) != "parsing" && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_EQ(StageOf(first), "parsing");
  // It asks while it waits; the third time, the caller is gone.
  int asked = 0;
  const auto left = FinishIf(second, Sha256Hex(bytes_), "second", [&] {
    EXPECT_EQ(StageOf(second), "waiting");
    return ++asked < 3;
  });
  EXPECT_EQ(left.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(uploads_->Get(second).value().state(), v1::Upload::OPEN);
  go_on.Notify();
  running.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(FinishIf(second, Sha256Hex(bytes_), "second", [] { return true; }).ok());
}

TEST_P(CheckTest, AWriterThatComesMeanwhileFindsTheUploadEnded) {
  const std::string name = Sent("d");
  std::thread writer;
  absl::Status written;
  const auto answer = FinishIf(name, Sha256Hex(bytes_), "f", [&] {
    if (!writer.joinable()) {
      writer = std::thread([&] { written = Write(name, static_cast<int64_t>(bytes_.size()), "x").status(); });
    }
    return true;
  });
  writer.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  ExpectError(written, absl::StatusCode::kFailedPrecondition, "UPLOAD_INCOMPLETE");
}

TEST_P(CheckTest, FinishedTwiceAtOnceWithTheSameIdGivesOneDatasetAndOneAnswer) {
  const std::string name = Sent("d");
  std::thread other;
  absl::StatusOr<v1::FinishUploadResponse> second;
  auto first = FinishIf(name, Sha256Hex(bytes_), "f", [&] {
    if (!other.joinable()) {
      other = std::thread([&] { second = FinishIf(name, Sha256Hex(bytes_), "f", [] { return true; }); });
    }
    return true;
  });
  other.join();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  first->clear_report();
  EXPECT_EQ(second->SerializeAsString(), first->SerializeAsString());
}

TEST_P(CheckTest, FinishedTwiceAtOnceWithAnotherIdIsRefused) {
  const std::string name = Sent("d");
  std::thread other;
  absl::Status second;
  const auto first = FinishIf(name, Sha256Hex(bytes_), "f", [&] {
    if (!other.joinable()) {
      other = std::thread([&] { second = FinishIf(name, Sha256Hex(bytes_), "g", [] { return true; }).status(); });
    }
    return true;
  });
  other.join();
  ASSERT_TRUE(first.ok()) << first.status();
  ExpectError(second, absl::StatusCode::kFailedPrecondition, "UPLOAD_INCOMPLETE");
}

TEST_P(CheckTest, WhoWaitsForAnotherCallOnTheSameUploadMayLeaveToo) {
  const std::string name = Sent("d");
  const auto writer = uploads_->StartWriting(name, static_cast<int64_t>(bytes_.size())).value();
  int asked = 0;
  const auto answer = FinishIf(name, Sha256Hex(bytes_), "f", [&] { return ++asked < 2; });
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
}

TEST(CheckBoardTest, ChecksRunInTheOrderInWhichTheyCame) {
  CheckBoard board;
  const auto wanted = [] { return true; };
  auto first = std::make_unique<CheckBoard::Check>(board, "u0", kNow, wanted);
  auto second = std::make_unique<CheckBoard::Check>(board, "u1", kNow, wanted);
  CheckBoard::Check third(board, "u2", kNow, wanted);
  ASSERT_TRUE(first->AwaitTurn().ok());
  std::thread last([&] {
    EXPECT_TRUE(third.AwaitTurn().ok());
    EXPECT_FALSE(board.Find("u1").has_value()) << "the one before has ended";
  });
  EXPECT_EQ(board.Find("u1")->stage(), "waiting");
  EXPECT_EQ(board.Find("u2")->stage(), "waiting");
  first.reset();
  EXPECT_TRUE(second->AwaitTurn().ok());
  second.reset();
  last.join();
}

TEST(CheckBoardTest, AFractionGrowsWithinAStageAndStartsAnewWithTheNext) {
  CheckBoard board;
  CheckBoard::Check check(board, "u", kNow, [] { return true; });
  const StageReport parsing = check.Stage("parsing");
  EXPECT_TRUE(parsing(0.5));
  EXPECT_TRUE(parsing(0.25)) << "a thread that is behind";
  EXPECT_EQ(board.Find("u")->stage(), "parsing");
  EXPECT_EQ(board.Find("u")->fraction(), 0.5);
  EXPECT_TRUE(check.Stage("sealing")(0.125));
  EXPECT_EQ(board.Find("u")->stage(), "sealing");
  EXPECT_EQ(board.Find("u")->fraction(), 0.125);
  EXPECT_FALSE(board.Find("another").has_value());
}

}  // namespace
}  // namespace dpar
