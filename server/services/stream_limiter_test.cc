#include "server/services/stream_limiter.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace dpar {
namespace {

TEST(StreamLimiterTest, ATenantGetsAsManyAsItMayAndAnotherWhenOneEnds) {
  StreamLimiter limiter("max_watches", 2);
  auto first = limiter.Enter("tenants/a");
  auto second = limiter.Enter("tenants/a");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok());
  const absl::Status third = limiter.Enter("tenants/a").status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(GetErrorInfo(third).has_value());
  EXPECT_EQ(GetErrorInfo(third)->reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(GetErrorInfo(third)->metadata().at("limit"), "max_watches");
  EXPECT_EQ(GetErrorInfo(third)->metadata().at("maximum"), "2");
  first->reset();
  EXPECT_TRUE(limiter.Enter("tenants/a").ok());
}

TEST(StreamLimiterTest, TenantsDoNotTakeEachOthersStreams) {
  StreamLimiter limiter("max_streams", 1);
  const auto a = limiter.Enter("tenants/a");
  const auto b = limiter.Enter("tenants/b");
  EXPECT_TRUE(a.ok());
  EXPECT_TRUE(b.ok());
}

}  // namespace
}  // namespace dpar
