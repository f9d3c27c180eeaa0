#include "client/cli/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/cli/terminal.h"

namespace dpar {
namespace {

TEST(FormatTest, BytesInPowersOfAThousand) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.0 kB");
  EXPECT_EQ(FormatBytes(1234567), "1.2 MB");
  EXPECT_EQ(FormatBytes(999'999), "1.0 MB");
  EXPECT_EQ(FormatBytes(34'500'000'000), "34.5 GB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<int64_t>::max()), "9223.4 PB");
}

TEST(FormatTest, CountsWithCommas) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-123), "-123");
  EXPECT_EQ(FormatCount(-1234), "-1,234");
}

TEST(FormatTest, DurationsAsAClock) {
  EXPECT_EQ(FormatClock(absl::Seconds(7)), "0:07");
  EXPECT_EQ(FormatClock(absl::Seconds(754)), "12:34");
  EXPECT_EQ(FormatClock(absl::Seconds(3723)), "1:02:03");
  EXPECT_EQ(FormatClock(absl::Seconds(-3)), "0:00");
  EXPECT_EQ(FormatClock(absl::InfiniteDuration()), "-");
}

TEST(FormatTest, AgesInOneUnit) {
  EXPECT_EQ(FormatAge(absl::Seconds(59)), "59s");
  EXPECT_EQ(FormatAge(absl::Minutes(59)), "59m");
  EXPECT_EQ(FormatAge(absl::Hours(23)), "23h");
  EXPECT_EQ(FormatAge(absl::Hours(49)), "2d");
  EXPECT_EQ(FormatAge(absl::Seconds(-5)), "0s");
}

TEST(FormatTest, NumbersHaveFourDigits) {
  EXPECT_EQ(FormatNumber(1), "1");
  EXPECT_EQ(FormatNumber(0.78125), "0.7812");
  EXPECT_EQ(FormatNumber(5e-05), "5e-05");
}

TEST(FormatTest, ABoundIsNeverShownAboveItself) {
  EXPECT_EQ(FormatNumberDown(3.98765), "3.987");
  EXPECT_EQ(FormatNumberDown(8), "8");
  EXPECT_EQ(FormatNumberDown(0), "0");
  EXPECT_EQ(FormatNumberDown(99.999), "99.99");
  EXPECT_EQ(FormatNumberDown(9.99999), "9.999");
  for (double value = 0.001; value < 100; value *= 1.013) {
    double shown = 0;
    ASSERT_TRUE(absl::SimpleAtod(FormatNumberDown(value), &shown));
    EXPECT_LE(shown, value);
    EXPECT_GT(shown, value * 0.998);
  }
}

TEST(FormatTest, OnlyNothingReadsAsZeroPerCent) {
  EXPECT_EQ(FormatPercent(0, 1000), "0.0%");
  EXPECT_EQ(FormatPercent(1, 1'000'000), "<0.1%");
  EXPECT_EQ(FormatPercent(123, 1000), "12.3%");
  EXPECT_EQ(FormatPercent(1500, 1000), "150.0%");
  EXPECT_EQ(FormatPercent(1, 0), "-");
}

TEST(FormatTest, TimesInUtc) {
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(86400);
  EXPECT_EQ(FormatTime(timestamp), "1970-01-02T00:00:00Z");
}

TEST(FormatTest, BarsAreAsWideAsAsked) {
  EXPECT_EQ(Bar(0.5, 10, false), "#####-----");
  EXPECT_EQ(Bar(-1, 4, false), "----");
  EXPECT_EQ(Bar(7, 4, false), "####");
  EXPECT_EQ(Bar(std::numeric_limits<double>::quiet_NaN(), 4, false), "----");
  EXPECT_EQ(Bar(0.5, 2, true), "█░");
  EXPECT_EQ(DisplayWidth(Bar(0.3, 17, true)), 17);
}

TEST(FormatTest, TruncationCountsColumnsAndCutsNoCharacter) {
  EXPECT_EQ(Truncate("abcdef", 6), "abcdef");
  EXPECT_EQ(Truncate("abcdef", 4), "abc~");
  EXPECT_EQ(Truncate("████", 3), "██~");
  EXPECT_EQ(Truncate("abc", 0), "");
}

TEST(FormatTest, ATableAlignsItsColumns) {
  Table table({"JOB", "STATE"}, {});
  table.Add({"a-long-job", "queued"});
  table.Add({"b", "done"});
  EXPECT_EQ(table.Render(0), "JOB         STATE\na-long-job  queued\nb           done\n");
}

TEST(FormatTest, ATableShrinksToEightyColumns) {
  const std::string longest(63, 'x');
  Table table({"JOB", "DATASET", "METHOD", "EPSILON", "STATE", "AGE"}, {1, 0});
  table.Add({longest, longest, "dpar-em0", "0.7812", "succeeded", "23h"});
  for (const absl::string_view line : absl::StrSplit(table.Render(80), '\n')) {
    EXPECT_LE(DisplayWidth(line), 80) << std::string(line);
  }
  EXPECT_THAT(table.Render(0), ::testing::HasSubstr(longest));
}

Variables From(const std::string& name, const std::string& value) {
  return [name, value](const std::string& asked) -> std::optional<std::string> {
    return asked == name ? std::optional<std::string>(value) : std::nullopt;
  };
}

TEST(TerminalTest, TheLocaleDecidesAboutUtf8) {
  EXPECT_TRUE(LocaleIsUtf8(From("LANG", "de_DE.UTF-8")));
  EXPECT_TRUE(LocaleIsUtf8(From("LC_ALL", "C.utf8")));
  EXPECT_FALSE(LocaleIsUtf8(From("LC_ALL", "C")));
  EXPECT_FALSE(LocaleIsUtf8(From("HOME", "/root")));
}

TEST(TerminalTest, NoColorTurnsColoursOff) {
  EXPECT_TRUE(DetectTerminal(From("TERM", "xterm")).colour);
  EXPECT_FALSE(DetectTerminal(From("NO_COLOR", "1")).colour);
  EXPECT_EQ(Coloured(Colour::kRed, "x", false), "x");
  EXPECT_EQ(Coloured(Colour::kRed, "x", true), "\x1b[31mx\x1b[0m");
}

}  // namespace
}  // namespace dpar
