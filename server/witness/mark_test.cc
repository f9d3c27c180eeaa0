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

Mark Example() {
  return {{"tenants/acme", std::string(64, 'a')}, "b1", {4, 0.1, 8, 1'000, 50}, 7, std::string(64, '2'), 90};
}

// A text with the digest that it would have.
std::string Sealed(const std::string& body) { return absl::StrCat(body, "sha256 ", Sha256Hex(body), "\n"); }
std::string BodyOf(const Mark& mark) {
  const std::string text = FormatMark(mark);
  return text.substr(0, text.rfind("sha256 "));
}

TEST(MarkTest, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(ParseMark(FormatMark(Example())).value(), Example());
  EXPECT_EQ(FormatMark(Example()),
            Sealed(absl::StrCat("dpar-mark 1\ntenant tenants/acme\ncontent ", std::string(64, 'a'),
                                "\nbudget b1\nterms 4 0.10000000000000001 8 1000 50\nentry 7 ", std::string(64, '2'),
                                " 90\n")));
}

TEST(MarkTest, EveryTextThatWasCutShortIsRefused) {
  const std::string text = FormatMark(Example());
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_EQ(ParseMark(text.substr(0, length)).status().code(), absl::StatusCode::kDataLoss) << length;
  }
  EXPECT_EQ(ParseMark(text + "x").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseMark(text + "\n").status().code(), absl::StatusCode::kDataLoss);
}

TEST(MarkTest, EveryByteThatWasChangedIsFound) {
  const std::string text = FormatMark(Example());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(ParseMark(changed).status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST(MarkTest, ATextWithARightDigestThatNoMarkHasIsRefused) {
  const std::string body = BodyOf(Example());
  ASSERT_TRUE(ParseMark(Sealed(body)).ok());
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"dpar-mark 1", "dpar-mark 01"},
      {"dpar-mark 1", "dpar-mark -2"},
      {"tenant tenants/acme", "tenant"},
      {" 8 1000", " 8 -1"},
      {" 8 1000", " 8 01000"},
      {" 8 1000", " 0 1000"},
      {" 8 1000", " 8"},
      {" 1000 50", " 1000 -5"},
      {" 1000 50", " 1000 50 5"},
      {"terms 4", "terms 0"},
      {"terms 4", "terms nan"},
      {"terms 4", "terms inf"},
      {"terms 4", "terms 4.0"},
      {"entry 7 ", "entry 0 "},
      {"entry 7 ", "entry x "},
      {" 90\n", " 90 1\n"},
      {" 90\n", " 9223372036854775808\n"},
      {"budget b1\n", ""},
      {"content a", "content A"},
      {"entry 7 2", "entry 7 g"},
  };
  for (const auto& [from, to] : faults) {
    const std::string spoilt = absl::StrReplaceAll(body, {{from, to}});
    ASSERT_NE(spoilt, body) << from;
    EXPECT_EQ(ParseMark(Sealed(spoilt)).status().code(), absl::StatusCode::kDataLoss) << from << " as " << to;
  }
  EXPECT_EQ(ParseMark(Sealed(body + "entry 8 " + std::string(64, '2') + " 90\n")).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(MarkTest, AMarkOfAnotherVersionIsNotGarbled) {
  const std::string newer = absl::StrReplaceAll(BodyOf(Example()), {{"dpar-mark 1", "dpar-mark 2"}}) + "new line\n";
  EXPECT_EQ(ParseMark(Sealed(newer)).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ParseMark(newer).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace dpar
