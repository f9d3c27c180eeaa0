#include "server/page/refusals.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace dpar {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000 / 3600 * 3600);

TEST(RefusalsTest, AllAreCountedAndTheNewestAreKept) {
  Refusals refusals;
  for (int i = 0; i < 1'000; ++i) {
    refusals.Note("tenants/a", {"tenants/a/datasets/d", kStart + absl::Minutes(i), absl::StrCat("no ", i)});
  }
  const Refusals::Summary all = refusals.Summarise("tenants/a", kStart);
  EXPECT_EQ(all.count, 1'000);
  ASSERT_EQ(all.newest.size(), 20U);
  EXPECT_EQ(all.newest[0].why, "no 999");
  EXPECT_EQ(all.newest[19].why, "no 980");
  EXPECT_EQ(refusals.Summarise("", kStart + absl::Minutes(995)).count, 5) << "of those that are kept to the moment";
  EXPECT_EQ(refusals.Summarise("", kStart + absl::Hours(10)).count, 400) << "of the others to the hour";
  EXPECT_EQ(refusals.Summarise("", kStart + absl::Hours(10) + absl::Minutes(30)).count, 400);
  EXPECT_EQ(refusals.Summarise("", kStart + absl::Hours(24)).count, 0);
}

TEST(RefusalsTest, AMonthIsCountedAndNoMore) {
  Refusals refusals;
  for (int i = 0; i < 24 * 60; ++i) {
    refusals.Note("tenants/a", {"", kStart + absl::Hours(i), ""});
  }
  EXPECT_EQ(refusals.Summarise("", kStart + absl::Hours(24 * 53)).count, 24 * 7);
  EXPECT_EQ(refusals.Summarise("", kStart).count, 24 * 32 + 20);
}

}  // namespace
}  // namespace dpar
