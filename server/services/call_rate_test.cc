#include "server/services/call_rate.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace dpar {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(CallRateTest, ATenantThatCallsTooOftenIsRefusedWithTheLimitAndNoOther) {
  CallRate rate(10);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(rate.Take("tenants/a", kStart).ok());
  const absl::Status refused = rate.Take("tenants/a", kStart);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(refused)->reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(GetErrorInfo(refused)->metadata().at("limit"), "max_calls_per_second");
  EXPECT_EQ(GetErrorInfo(refused)->metadata().at("maximum"), "10");
  EXPECT_TRUE(rate.Take("tenants/b", kStart).ok());
}

TEST(CallRateTest, CallsComeBackAtTheRate) {
  CallRate rate(10);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(rate.Take("a", kStart).ok());
  const absl::Time later = kStart + absl::Milliseconds(250);
  EXPECT_TRUE(rate.Take("a", later).ok());
  EXPECT_TRUE(rate.Take("a", later).ok());
  EXPECT_FALSE(rate.Take("a", later).ok());
}

}  // namespace
}  // namespace dpar
