#include "core/table/table_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/table/utf8.h"

namespace dpar {
namespace {

using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The rows, their fields joined by '|', or what was wrong.
std::vector<std::string> ReadAll(const std::string& path) {
  auto table = TableReader::Open(path);
  if (!table.ok()) {
    return {std::string(table.status().message())};
  }
  std::vector<std::string> rows;
  while (true) {
    const auto found = table->Next();
    if (!found.ok()) {
      rows.emplace_back(found.status().message());
      return rows;
    }
    if (!*found) {
      return rows;
    }
    std::string row;
    for (const absl::string_view& field : table->fields()) {
      absl::StrAppend(&row, &field == table->fields().data() ? "" : "|", field);
    }
    rows.push_back(row);
  }
}

std::vector<std::string> Rows(const std::string& bytes) {
  const std::string path = TestPath("t.csv");
  WriteBytes(path, bytes);
  return ReadAll(path);
}

TEST(TableReaderTest, ReadsWhatSpreadsheetsAndDatabasesExport) {
  EXPECT_THAT(Rows("a,b\n1,2\n3,4"), ElementsAre("1|2", "3|4"));
  EXPECT_THAT(Rows("a;b\r\n1,5;2\r\n\r\n3;4\r\n"), ElementsAre("1,5|2", "3|4"));
  EXPECT_THAT(Rows("a\tb\n1\t 2 \n"), ElementsAre("1|2"));
  EXPECT_THAT(Rows("\xef\xbb\xbf\"a, b\",c\n\"x,y\",\"say \"\"hi\"\"\"\n"), ElementsAre("x,y|say \"hi\""));
  EXPECT_THAT(Rows("a,b\n\"two\nlines\", z \n"), ElementsAre("two\nlines|z"));
  EXPECT_THAT(Rows("a,b,c\n1,\"\",\n"), ElementsAre("1||"));
  EXPECT_THAT(Rows("name\nZo\xc3\xab\n"), ElementsAre("Zo\xc3\xab"));
}

TEST(TableReaderTest, ReadsGzip) {
  const std::string path = TestPath("t.csv.gz");
  gzFile file = gzopen(path.c_str(), "w");
  std::string text = "a,b\n";
  for (int i = 0; i < 100'000; ++i) {
    absl::StrAppend(&text, i, ",x\n");
  }
  ASSERT_GT(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), 0);
  ASSERT_EQ(gzclose(file), Z_OK);
  const auto rows = ReadAll(path);
  ASSERT_EQ(rows.size(), 100'000u);
  EXPECT_EQ(rows.back(), "99999|x");
  const std::string bytes = testing::ReadBytes(path);
  WriteBytes(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(ReadAll(path).back(), HasSubstr("cut off"));
}

TEST(TableReaderTest, NamesFileAndLineOfWhatIsWrong) {
  EXPECT_THAT(Rows("a,b\n1,2\n3\n"),
              ElementsAre("1|2", ::testing::EndsWith("t.csv line 3: 1 fields; the header has 2 columns")));
  EXPECT_THAT(Rows("a,b\n\"x\ny\",1\n1,2,3\n").back(), HasSubstr("t.csv line 4: 3 fields"));
  EXPECT_THAT(Rows("a,b\n1,\"2\n").back(), HasSubstr("t.csv line 2: a quote is opened and never closed"));
  EXPECT_THAT(Rows("a,b\n1,5\" disk\n2,6\" disk\n").back(), HasSubstr("line 2: a quote stands within a field"));
  EXPECT_THAT(Rows("a,b\n1,\"x\"y\n").back(), HasSubstr("line 2: text follows a closing quote"));
  EXPECT_THAT(Rows(std::string("a,b\n1,\0\n", 8)).back(), HasSubstr("line 2: the record holds a NUL byte"));
  EXPECT_THAT(Rows("a,b\n1,\xff\n").back(), HasSubstr("line 2: the record is not UTF-8"));
  EXPECT_THAT(Rows("\xff\xfe\x61").back(), HasSubstr("UTF-16"));
  EXPECT_THAT(Rows("a,a\n").back(), HasSubstr("two columns of the header are named 'a'"));
  EXPECT_THAT(Rows("a,\n").back(), HasSubstr("no name"));
  EXPECT_THAT(Rows("").back(), HasSubstr("is empty"));
  EXPECT_THAT(Rows(absl::StrCat("a\n", std::string(3 << 20, 'x'))).back(), HasSubstr("more than"));
  EXPECT_THAT(Rows(std::string(100'000, ',')).back(), HasSubstr("more than 20000 fields"));
  EXPECT_THAT(ReadAll("/nowhere/t.csv").back(), HasSubstr("cannot open"));
  EXPECT_THAT(ReadAll("/tmp").back(), HasSubstr("not a regular file"));
}

TEST(TableReaderTest, FieldsThatAreWrittenAreReadBack) {
  const std::vector<std::string> texts = {"plain", "a,b", "a;b", "say \"hi\"", "two\nlines", "\xc3\xab", "tab\tbed"};
  std::string file = "x,y\n";
  for (const std::string& text : texts) {
    absl::StrAppend(&file, CsvField(text), ",1\n");
  }
  const auto rows = Rows(file);
  ASSERT_EQ(rows.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(rows[i], absl::StrCat(texts[i], "|1"));
  }
}

TEST(Utf8Test, KnowsWellFormedTextAlone) {
  EXPECT_TRUE(IsUtf8("plain text that is longer than a word"));
  EXPECT_TRUE(IsUtf8("\xc3\xab \xe2\x82\xac \xf0\x9f\x98\x80"));
  for (const char* wrong :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8", "aaaaaaaa\xe2\x82"}) {
    EXPECT_FALSE(IsUtf8(wrong));
  }
}

TEST(TableReaderTest, ACellIsShownShortAndWithoutCommandsToATerminal) {
  EXPECT_EQ(ShownCell("plain \u00e9"), "'plain \u00e9'");
  EXPECT_EQ(ShownCell("\x1b[2Jx\n\x7f"), "'\\x1b[2Jx\\x0a\\x7f'");
  EXPECT_EQ(ShownCell("\u009b2J\u202eabc"), "'\\xc2\\x9b2J\\xe2\\x80\\xaeabc'");
  EXPECT_EQ(ShownCell(std::string(41, 'a')), absl::StrCat("'", std::string(40, 'a'), "...'"));
  EXPECT_EQ(ShownCell(absl::StrCat(std::string(39, 'a'), "\u00e9")), absl::StrCat("'", std::string(39, 'a'), "...'"));
}

}  // namespace
}  // namespace dpar
