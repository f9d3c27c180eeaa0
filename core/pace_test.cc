#include "core/pace.h"

#include <gtest/gtest.h>

#include <functional>

namespace dpar {
namespace {

TEST(Pace, AsksAtTheStartAndThenOnceForSoManyEntries) {
  int64_t asked = 0;
  const std::function<bool()> count = [&asked] { return ++asked > 0; };
  Pace pace(count);
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(pace.GoOn(1));
  EXPECT_EQ(asked, 1);
  for (int64_t entries = 2; entries < kEntriesPerQuestion / 2; ++entries) {
    EXPECT_TRUE(pace.GoOn(1));
  }
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(pace.GoOn(10 * kEntriesPerQuestion));
  EXPECT_EQ(asked, 1) << "a piece is not divided";
  EXPECT_TRUE(pace.GoOn(0));
  EXPECT_EQ(asked, 2);
}

TEST(Pace, EmptyPiecesAreWorkToo) {
  int64_t asked = 0;
  const std::function<bool()> count = [&asked] { return ++asked > 0; };
  Pace pace(count);
  for (int64_t piece = 0; piece <= kEntriesPerQuestion; ++piece) {
    EXPECT_TRUE(pace.GoOn(0));
  }
  EXPECT_EQ(asked, 2);
}

TEST(Pace, DoesNotAskAgainAfterANo) {
  int64_t asked = 0;
  const std::function<bool()> second_is_no = [&asked] { return ++asked != 2; };
  Pace pace(second_is_no);
  EXPECT_TRUE(pace.GoOn(kEntriesPerQuestion));
  EXPECT_FALSE(pace.GoOn(kEntriesPerQuestion));
  EXPECT_FALSE(pace.GoOn(kEntriesPerQuestion));
  EXPECT_EQ(asked, 2);
}

TEST(KeepGoing, ANoIsFinal) {
  int64_t asked = 0;
  KeepGoing keep_going([&asked] { return ++asked != 2; });
  const std::function<bool()> passed_on = std::ref(keep_going);
  EXPECT_TRUE(passed_on());
  EXPECT_FALSE(keep_going.stopped());
  EXPECT_FALSE(passed_on());
  EXPECT_FALSE(passed_on());
  EXPECT_FALSE(keep_going());
  EXPECT_TRUE(keep_going.stopped());
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace dpar
