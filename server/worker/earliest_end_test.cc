#include "server/worker/earliest_end.h"

#include <gtest/gtest.h>

namespace dpar {
namespace {

class EarliestEndTest : public ::testing::Test {
 protected:
  absl::Duration now_ = absl::Hours(1);
  int sleeps_ = 0;
  EarliestEnd end_{{[this] { return now_; },
                    [this](absl::Duration duration) {
                      ++sleeps_;
                      now_ += duration;
                    }}};
};

TEST_F(EarliestEndTest, AStageEndsAtTheSameAgeWhateverItsWorkTook) {
  for (const absl::Duration work : {absl::ZeroDuration(), absl::Milliseconds(1), absl::Milliseconds(120)}) {
    const absl::Duration start = now_ += absl::Seconds(5);
    end_.Begin();
    now_ += work;
    end_.Await(absl::Milliseconds(120), [] { return true; });
    EXPECT_EQ(now_ - start, absl::Milliseconds(120));
  }
}

TEST_F(EarliestEndTest, WorkBeyondItWaitsForNothing) {
  end_.Begin();
  now_ += absl::Milliseconds(121);
  end_.Await(absl::Milliseconds(120), [] { return true; });
  EXPECT_EQ(sleeps_, 0);
}

TEST_F(EarliestEndTest, ACancelEndsTheWaitWithinAMoment) {
  const absl::Duration start = now_;
  end_.Begin();
  end_.Await(absl::Hours(1), [&] { return now_ - start < absl::Milliseconds(200); });
  EXPECT_EQ(now_ - start, absl::Milliseconds(200));
}

}  // namespace
}  // namespace dpar
