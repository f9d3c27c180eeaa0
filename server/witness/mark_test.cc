#include "server/witness/mark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/certificate/digest.h"

namespace dpar {
namespace {

Mark TwoEntries() {
  return {"tenants/acme/populations/b1",
          {4, 0.1, 8, 1'000},
          {{3, std::string(64, '1'), 40}, {7, std::string(64, '2'), 90}}};
}

// A text with the digest that it would have.
std::string Sealed(const std::string& body) { return absl::StrCat(body, "sha256 ", Sha256Hex(body), "\n"); }
std::string BodyOf(const Mark& mark) {
  const std::string text = FormatMark(mark);
  return text.substr(0, text.rfind("sha256 "));
}

TEST(MarkTest, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(ParseMark(FormatMark(TwoEntries())).value(), TwoEntries());
  EXPECT_EQ(FormatMark(TwoEntries()),
            Sealed(absl::StrCat("dpar-mark 1\npopulation tenants/acme/populations/b1\n"
                                "terms 4 0.10000000000000001 8 1000 0 0 0\nentry 3 ",
                                std::string(64, '1'), " 40\nentry 7 ", std::string(64, '2'), " 90\n")));
}

TEST(MarkTest, ADegreePromiseTheSumOfNAndWhetherItIsClosedAreTheLastOfTheTerms) {
  Mark mark = TwoEntries();
  mark.terms.max_degree = 50;
  EXPECT_EQ(ParseMark(FormatMark(mark)).value(), mark);
  EXPECT_THAT(FormatMark(mark), ::testing::HasSubstr(" 8 1000 50 0 0\n"));
  mark.terms.node_total = 300;
  mark.terms.closed = true;
  EXPECT_EQ(ParseMark(FormatMark(mark)).value(), mark);
  EXPECT_THAT(FormatMark(mark), ::testing::HasSubstr(" 8 1000 50 300 1\n"));
}

TEST(MarkTest, EveryTextThatWasCutShortIsRefused) {
  const std::string text = FormatMark(TwoEntries());
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_EQ(ParseMark(text.substr(0, length)).status().code(), absl::StatusCode::kDataLoss) << length;
  }
  EXPECT_EQ(ParseMark(text + "x").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseMark(text + "\n").status().code(), absl::StatusCode::kDataLoss);
}

TEST(MarkTest, EveryByteThatWasChangedIsFound) {
  const std::string text = FormatMark(TwoEntries());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(ParseMark(changed).status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST(MarkTest, ATextWithARightDigestThatNoMarkHasIsRefused) {
  const std::string body = BodyOf(TwoEntries());
  ASSERT_TRUE(ParseMark(Sealed(body)).ok());
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"dpar-mark 1", "dpar-mark 0"},
      {"dpar-mark 1", "dpar-mark 01"},
      {"dpar-mark 1", "dpar-mark -2"},
      {"population tenants/acme/populations/b1", "population"},
      {" 8 1000", " 8 -1"},
      {" 8 1000", " 8 01000"},
      {" 8 1000", " 0 1000"},
      {" 8 1000", " 8"},
      {" 1000 0 0 0", " 1000 -5 0 0"},
      {" 1000 0 0 0", " 1000 0 -5 0"},
      {" 1000 0 0 0", " 1000 0 0 2"},
      {" 1000 0 0 0", " 1000 0 0 0 0"},
      {" 1000 0 0 0", " 1000 0 0"},
      {"terms 4", "terms 0"},
      {"terms 4", "terms nan"},
      {"terms 4", "terms inf"},
      {"terms 4", "terms 4.0"},
      {"entry 7 ", "entry 3 "},
      {"entry 7 ", "entry 2 "},
      {"entry 3 ", "entry 0 "},
      {"entry 3 ", "entry x "},
      {" 90\n", " 39\n"},
      {" 90\n", " 90 1\n"},
      {" 90\n", " 9223372036854775808\n"},
      {"population tenants/acme/populations/b1\n", ""},
      {"entry 3 1", "entry 3 g"},
  };
  for (const auto& [from, to] : faults) {
    const std::string spoilt = absl::StrReplaceAll(body, {{from, to}});
    ASSERT_NE(spoilt, body) << from;
    EXPECT_EQ(ParseMark(Sealed(spoilt)).status().code(), absl::StatusCode::kDataLoss) << from << " as " << to;
  }
  Mark none = TwoEntries();
  none.checkpoints.clear();
  EXPECT_EQ(ParseMark(FormatMark(none)).status().code(), absl::StatusCode::kDataLoss);
  Mark many = TwoEntries();
  for (int64_t i = 8; many.checkpoints.size() <= kMaxCheckpoints; ++i) {
    many.checkpoints.push_back({i, std::string(64, '3'), 90});
  }
  EXPECT_EQ(ParseMark(FormatMark(many)).status().code(), absl::StatusCode::kDataLoss);
}

TEST(MarkTest, AMarkOfANewerVersionIsNotGarbled) {
  const std::string newer = absl::StrReplaceAll(BodyOf(TwoEntries()), {{"dpar-mark 1", "dpar-mark 2"}}) + "new line\n";
  EXPECT_EQ(ParseMark(Sealed(newer)).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ParseMark(newer).status().code(), absl::StatusCode::kDataLoss);
}

TEST(MarkTest, OldEntriesAreDroppedSoThatNoGapIsLargeForItsAge) {
  Mark mark = TwoEntries();
  mark.checkpoints.clear();
  for (int64_t sequence = 1; sequence <= 20'000; ++sequence) {
    AddCheckpoint(mark, {sequence, std::string(64, '1'), sequence});
  }
  ASSERT_EQ(mark.checkpoints.size(), kMaxCheckpoints);
  EXPECT_EQ(mark.checkpoints.front().sequence, 1);
  EXPECT_EQ(mark.last().sequence, 20'000);
  for (size_t i = 0; i + 1 < mark.checkpoints.size(); ++i) {
    const int64_t gap = mark.checkpoints[i + 1].sequence - mark.checkpoints[i].sequence;
    EXPECT_LE(gap - 1, (mark.last().sequence - mark.checkpoints[i].sequence) / 4) << i;
  }
  EXPECT_EQ(ParseMark(FormatMark(mark)).value(), mark);
}

}  // namespace
}  // namespace dpar
