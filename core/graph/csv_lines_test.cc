#include "core/graph/csv_lines.h"

#include <sys/stat.h>
#include <zlib.h>

#include <filesystem>
#include <limits>

#include "absl/strings/str_join.h"
#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kBad[] = "INVALID_ARGUMENT INVALID_GRAPH array=x";

std::string BadAt(int64_t line) { return std::string(kBad) + " position=" + std::to_string(line); }

std::string Gzip(const std::string& text) {
  const std::string path = TestPath("compressed.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return ReadBytes(path);
}

CsvLines Open(const std::string& bytes, int64_t max_fields = 3) {
  const std::string path = TestPath("lines.csv");
  WriteBytes(path, bytes);
  absl::StatusOr<CsvLines> lines = CsvLines::Open(path, "x", max_fields);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return *std::move(lines);
}

// The fields of each line, joined by |.
absl::StatusOr<std::vector<std::string>> ReadAll(CsvLines& lines) {
  std::vector<std::string> all;
  for (;;) {
    const absl::StatusOr<bool> more = lines.Next();
    if (!more.ok()) {
      return more.status();
    }
    if (!*more) {
      return all;
    }
    std::vector<std::string> fields(lines.fields().begin(), lines.fields().end());
    all.push_back(absl::StrJoin(fields, "|"));
  }
}

std::vector<std::string> Lines(const std::string& bytes) {
  CsvLines lines = Open(bytes);
  const auto all = ReadAll(lines);
  EXPECT_TRUE(all.ok()) << all.status();
  return all.ok() ? *all : std::vector<std::string>();
}

std::string Refusal(const std::string& bytes) {
  CsvLines lines = Open(bytes);
  return Summary(ReadAll(lines).status());
}

TEST(CsvLinesTest, FindsTheSeparatorInTheFirstLineOfData) {
  EXPECT_THAT(Lines("0,1\n2,3\n"), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines("0\t1\n2\t3\n"), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines("0;1\n2;3\n"), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines("0 1\n  2   3 \n"), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines("0\n1\n"), ElementsAre("0", "1"));
  EXPECT_THAT(Lines("0 , 1\n2 ,3\n"), ElementsAre("0|1", "2|3"));
}

TEST(CsvLinesTest, KeepsTheSeparatorItFound) {
  EXPECT_THAT(Lines("0,1\n2;3\n"), ElementsAre("0|1", "2;3"));
  EXPECT_THAT(Lines("a;b\n0,1\n"), ElementsAre("0|1")) << "a header says nothing about the data";
}

TEST(CsvLinesTest, KeepsEmptyFieldsOfSeparatorsOtherThanSpaces) {
  EXPECT_THAT(Lines("5,\n,6\n7,,8\n"), ElementsAre("5|", "|6", "7||8"));
  EXPECT_THAT(Lines("5\t\n"), ElementsAre("5|"));
}

TEST(CsvLinesTest, PassesOverOneHeaderCommentsAndEmptyLines) {
  EXPECT_THAT(Lines("# made by hand\n\nsource,target\n# more\n0,1\n   \n\n#\n2,3\n\n"), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines("a,b\nc,d\n"), ElementsAre("c|d")) << "the second is data, for the caller to refuse";
  EXPECT_THAT(Lines("a,1\n"), ElementsAre("a|1")) << "a header has no number";
}

TEST(CsvLinesTest, AcceptsEveryLineEnd) {
  EXPECT_THAT(Lines("0,1\r\n2,3\r\n"), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines("0,1\n2,3"), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines(""), IsEmpty());
  EXPECT_THAT(Lines("\r\n\n"), IsEmpty());
}

TEST(CsvLinesTest, CountsTheEmptyLinesBeforeALine) {
  CsvLines lines = Open("\nnode,label\n\n\n0,1\n1,2\n\n2,3\n");
  std::vector<int64_t> blank;
  while (*lines.Next()) {
    blank.push_back(lines.blank_lines());
  }
  EXPECT_THAT(blank, ElementsAre(2, 0, 1));
}

TEST(CsvLinesTest, ReadsGzipByItsContent) {
  EXPECT_THAT(Lines(Gzip("0,1\n2,3\n")), ElementsAre("0|1", "2|3"));
  EXPECT_THAT(Lines(Gzip("0,1\n") + Gzip("2,3\n")), ElementsAre("0|1", "2|3")) << "two gzip files, one after the other";
  EXPECT_THAT(Lines(Gzip("")), IsEmpty());
}

TEST(CsvLinesTest, ReadsLinesAcrossItsBuffers) {
  std::string text;
  std::vector<std::string> expected;
  for (int i = 0; i < 50'000; ++i) {
    text += std::to_string(i) + "," + std::to_string(7 * i) + "\n";
    expected.push_back(std::to_string(i) + "|" + std::to_string(7 * i));
  }
  EXPECT_EQ(Lines(text), expected);
  EXPECT_EQ(Lines(Gzip(text)), expected);
}

TEST(CsvLinesTest, SaysWhenThereIsNoSuchFile) {
  EXPECT_EQ(Summary(CsvLines::Open("/nonexistent/a.csv", "x", 2).status()),
            "NOT_FOUND RESOURCE_NOT_FOUND resource=/nonexistent/a.csv");
}

TEST(CsvLinesTest, RefusesWhatIsNotARegularFileWithoutHanging) {
  EXPECT_EQ(Summary(CsvLines::Open(::testing::TempDir(), "x", 2).status()), kBad);
  const std::string pipe = TestPath("pipe");
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(Summary(CsvLines::Open(pipe, "x", 2).status()), kBad);
}

TEST(CsvLinesTest, RefusesATruncatedGzipWhereverItIsCutOff) {
  const std::string whole = Gzip("0,1\n2,3\n4,5\n");
  for (size_t length = 2; length < whole.size(); ++length) {
    EXPECT_EQ(Summary([&] {
                CsvLines lines = Open(whole.substr(0, length));
                return ReadAll(lines).status();
              }()),
              kBad)
        << length;
  }
}

TEST(CsvLinesTest, RefusesADamagedGzip) {
  std::string whole = Gzip("0,1\n2,3\n4,5\n");
  whole[whole.size() - 6] = static_cast<char>(whole[whole.size() - 6] ^ 1);  // the checksum
  EXPECT_EQ(Refusal(whole), kBad);
}

TEST(CsvLinesTest, RefusesWhatIsNotText) {
  EXPECT_EQ(Refusal(std::string("0,1\n2,\0003\n", 9)), BadAt(2));
  EXPECT_EQ(Refusal(std::string("0,1\n#\0\n", 7)), BadAt(2)) << "also in a comment";
  EXPECT_EQ(Refusal("0,1\r2,3\r4,5"), BadAt(1));
  EXPECT_EQ(Refusal("PK\3\4 a zip"), BadAt(1));
  EXPECT_EQ(Refusal("\x7f"
                    "ELF"),
            BadAt(1));
}

TEST(CsvLinesTest, RefusesLongLines) {
  const auto line = [](size_t bytes) { return "0,1\n# " + std::string(bytes - 2, 'a') + "\n"; };
  EXPECT_EQ(Refusal(line(4096)), "OK");
  EXPECT_EQ(Refusal(line(4097)), BadAt(2));
  EXPECT_EQ(Refusal(line(1'000'000)), BadAt(2));
  EXPECT_EQ(Refusal(std::string(1'000'000, '1')), BadAt(1)) << "without a line end";
  CsvLines wide = Open("# " + std::string(300'000, 'a') + "\n" + std::string(100'000, ' ') + "1\n", 10'000);
  EXPECT_THAT(*ReadAll(wide), ElementsAre("1"));
}

TEST(CsvLinesTest, ShowsOneFieldMoreThanAllowedAndNoMore) {
  EXPECT_THAT(Lines("1,2,3\n1,2,3,4\n1,2,3,4,5,6\n"), ElementsAre("1|2|3", "1|2|3|4", "1|2|3|4"));
}

TEST(CsvLinesTest, ChecksTheNumberOfFields) {
  CsvLines lines = Open("1,2\n");
  ASSERT_TRUE(*lines.Next());
  EXPECT_TRUE(lines.CheckFieldCount(2).ok());
  EXPECT_EQ(lines.CheckFieldCount(1).message(), "x[1] has more fields than 1");
  EXPECT_EQ(lines.CheckFieldCount(3).message(), "x[1] has fewer fields than 3");
}

TEST(CsvLinesTest, ReadsIntegersExactly) {
  CsvLines lines =
      Open("0,-7,123456789012345678\n99999999999999999999,-99999999999999999999,1\n+1,1.0, \n0x1,1 2,1e3\n");
  ASSERT_TRUE(*lines.Next());
  EXPECT_EQ(*lines.Integer(0), 0);
  EXPECT_EQ(*lines.Integer(1), -7);
  EXPECT_EQ(*lines.Integer(2), 123456789012345678);
  ASSERT_TRUE(*lines.Next());
  EXPECT_EQ(*lines.Integer(0), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*lines.Integer(1), std::numeric_limits<int64_t>::min());
  for (const int64_t line : {3, 4}) {
    ASSERT_TRUE(*lines.Next());
    for (const size_t field : {0U, 1U, 2U}) {
      EXPECT_EQ(Summary(lines.Integer(field).status()), BadAt(line)) << field;
    }
  }
}

TEST(CsvLinesTest, ReadsFiniteNumbers) {
  CsvLines lines = Open("1,-2.5e-3,1e-60\n0.1,3.4028235e38,-0\n1e39,nan,inf\n-1e400,x,\n1.5x,1 2,--1\n");
  ASSERT_TRUE(*lines.Next());
  EXPECT_EQ(*lines.Number(0), 1.0F);
  EXPECT_EQ(*lines.Number(1), -2.5e-3F);
  EXPECT_EQ(*lines.Number(2), 0.0F);
  ASSERT_TRUE(*lines.Next());
  EXPECT_EQ(*lines.Number(0), 0.1F);
  EXPECT_EQ(*lines.Number(1), std::numeric_limits<float>::max());
  EXPECT_EQ(*lines.Number(2), 0.0F);
  for (const int64_t line : {3, 4, 5}) {
    ASSERT_TRUE(*lines.Next());
    for (const size_t field : {0U, 1U, 2U}) {
      EXPECT_EQ(Summary(lines.Number(field).status()), BadAt(line)) << field;
    }
  }
}

TEST(CsvLinesTest, KeepsTheFilesContentOutOfMessages) {
  CsvLines lines = Open("1\n98765x\n");
  ASSERT_TRUE(*lines.Next());
  ASSERT_TRUE(*lines.Next());
  EXPECT_EQ(lines.Integer(0).status().message(), "x[2] holds something else than an integer");
  EXPECT_EQ(lines.Number(0).status().message(), "x[2] holds something else than a number");
}

}  // namespace
}  // namespace dpar
