#include "core/plain_text.h"

#include <gtest/gtest.h>

#include <string>

namespace dpar {
namespace {

TEST(PlainTextTest, NothingTurnsTheDirection) {
  EXPECT_TRUE(IsPlainText(""));
  EXPECT_TRUE(IsPlainText("Zo\u00EB \u2013 \u05D0\u05D1"));
  for (const std::string turn : {"\u061C", "\u200E", "\u200F", "\u202A", "\u202E", "\u2066", "\u2069", "\n", "\x7f"}) {
    EXPECT_FALSE(IsPlainText("a" + turn + "b")) << turn;
  }
}

}  // namespace
}  // namespace dpar
