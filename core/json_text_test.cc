#include "core/json_text.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
std::string TextOf(const T& value) {
  JsonText json;
  json.Value(value);
  return json.Take();
}

std::string TreeOf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

TEST(JsonTextTest, SeparatesWhatIsInObjectsAndLists) {
  JsonText json;
  json.BeginObject();
  json.Key("empty");
  json.BeginObject();
  json.EndObject();
  json.Add("text", "a,b");
  json.Add("none", nullptr);
  json.Key("list");
  json.BeginList();
  json.Value(int64_t{-1});
  json.BeginList();
  json.EndList();
  json.BeginObject();
  json.Add("yes", true);
  json.Add("no", false);
  json.EndObject();
  json.Value("ends with {");
  json.Value("ends with :");
  json.EndList();
  json.Add("half", 0.5);
  json.EndObject();
  EXPECT_EQ(
      json.Take(),
      R"({"empty":{},"text":"a,b","none":null,"list":[-1,[],{"yes":true,"no":false},"ends with {","ends with :"],)"
      R"("half":0.5})");
}

TEST(JsonTextTest, WritesTextsAsATreeDoes) {
  for (int first = 0; first < 256; ++first) {
    for (const char second : {'a', '"', '\\', '\n', '\x80', '\xbf', '\xc3'}) {
      const std::string text = {static_cast<char>(first), second, '"', 'z'};
      EXPECT_EQ(TextOf(text), TreeOf(text)) << first << " " << static_cast<int>(second);
    }
  }
  EXPECT_EQ(TextOf(""), "\"\"");
  EXPECT_EQ(TextOf(R"(say "so"\)"), R"("say \"so\"\\")");
  EXPECT_EQ(TextOf("caf\xc3\xa9"), "\"caf\xc3\xa9\"");
  EXPECT_EQ(TextOf("\xff"), "\"\xef\xbf\xbd\"") << "no UTF-8";
  EXPECT_EQ(TextOf(std::string("a\0b", 3)), R"("a\u0000b")");
}

TEST(JsonTextTest, WritesNumbersAsATreeDoes) {
  testing::FixedRandom random(7);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t bits = UniformBits(random);
    double number = 0;
    std::memcpy(&number, &bits, sizeof number);
    ASSERT_EQ(TextOf(number), TreeOf(number));
    const double small = std::ldexp(static_cast<double>(bits >> 40U), -static_cast<int>(bits % 60));
    ASSERT_EQ(TextOf(small), TreeOf(small));
    ASSERT_EQ(TextOf(static_cast<int64_t>(bits)), TreeOf(static_cast<int64_t>(bits)));
  }
  EXPECT_EQ(TextOf(0.0), "0.0");
  EXPECT_EQ(TextOf(-0.0), "-0.0");
  EXPECT_EQ(TextOf(1e-5), "1e-05");
  EXPECT_EQ(TextOf(1e300), "1e+300");
  EXPECT_EQ(TextOf(100.0), "100.0");
  EXPECT_EQ(TextOf(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(TextOf(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(TextOf(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(TextOf(int32_t{-7}), "-7");
}

}  // namespace
}  // namespace dpar
