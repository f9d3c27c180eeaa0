#include "core/table/row_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/infer/input_rows.h"

namespace dpar {
namespace {

using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kKnots = static_cast<int>(kNumberKnots);

// The features of one column with this description, and of a flag after it.
struct Encoded {
  std::vector<int32_t> columns;
  std::vector<float> values;
  size_t others = 0;
  std::string error;
};

Encoded Encode(const std::string& description, const std::string& cell, const std::string& flag = "",
               const std::string& header = "id,x,f", char separator = ',') {
  Encoded encoded;
  const auto schema =
      ParseSchema(absl::StrCat("nodes:\n  id: id\n  label: {column: y, classes: [a, b]}\n  columns:\n    x: {",
                               description, "}\n    f: {type: flag}\nedges: {source: s, target: t}\n"));
  if (!schema.ok()) {
    encoded.error = std::string(schema.status().message());
    return encoded;
  }
  const std::string path = TestPath("row.csv");
  const std::string between(1, separator);
  WriteBytes(path, absl::StrCat(header, "\n1", between, cell, between, flag, "\n"));
  auto table = TableReader::Open(path);
  EXPECT_TRUE(table.ok()) << table.status();
  auto encoder = RowEncoder::Make(*schema, *table);
  if (!encoder.ok()) {
    encoded.error = std::string(encoder.status().message());
    return encoded;
  }
  const auto next = table->Next();
  EXPECT_TRUE(next.ok()) << next.status();
  RowEncoder::Row row;
  const absl::Status status = encoder->Encode(*table, row);
  return {row.columns, row.values, row.others.size(), std::string(status.message())};
}

constexpr const char* kNumber = "type: number, range: [0, 15]";

TEST(RowEncoderTest, ANumberIsSharedByTheTwoNearestKnots) {
  ASSERT_EQ(kKnots, 16) << "the ranges here have a knot at each whole number";
  const Encoded between = Encode(kNumber, "2.25");
  EXPECT_THAT(between.columns, ElementsAre(2, 3, kKnots + 2 + 3));
  EXPECT_THAT(between.values, ElementsAre(0.75F, 0.25F, 1.0F));
  EXPECT_THAT(Encode(kNumber, "0").columns, ElementsAre(0, kKnots + 5));
  EXPECT_THAT(Encode(kNumber, "15").columns, ElementsAre(15, kKnots + 5));
  EXPECT_THAT(Encode("type: number, range: [0, 32767], scale: log", "32767").columns, ElementsAre(15, kKnots + 5));
  const Encoded log = Encode("type: number, range: [0, 32767], scale: log", "7");
  EXPECT_THAT(log.columns, ElementsAre(3, kKnots + 5)) << "log2(8) of log2(32768)";
  EXPECT_THAT(Encode("type: number, range: [1, 32768], scale: log", "8").columns, ElementsAre(3, kKnots + 5));
  EXPECT_THAT(Encode("type: date, range: [2024-01-01, 2024-01-16]", "2024-01-04T10:00").columns,
              ElementsAre(3, kKnots + 5));
}

TEST(RowEncoderTest, OtherAndMissingValuesHavePlacesOfTheirOwn) {
  for (const char* outside : {"-0.1", "15.1", "1e300"}) {
    const Encoded other = Encode(kNumber, outside, "yes");
    EXPECT_THAT(other.columns, ElementsAre(kKnots, kKnots + 2)) << outside;
    EXPECT_EQ(other.others, 1u);
  }
  for (const char* missing : {"", "NA", "nan", "NULL", "n/a", "#N/A", "None", "-"}) {
    EXPECT_THAT(Encode(kNumber, missing, "yes").columns, ElementsAre(kKnots + 1, kKnots + 2)) << missing;
  }
  EXPECT_THAT(Encode("type: category, values: [AT, NA]", "NA").columns, ElementsAre(1, 4 + 3)) << "a declared value";
  EXPECT_THAT(Encode("type: category, values: [AT, NA]", "ZZ").columns, ElementsAre(2, 4 + 3));
  EXPECT_THAT(Encode("type: category, values: [AT, NA]", "", "no").columns, ElementsAre(3, 4 + 1));
  EXPECT_THAT(Encode("type: flag", "TRUE", "0").columns, ElementsAre(0, 4 + 1));
  EXPECT_THAT(Encode("type: flag", "perhaps", "1").columns, ElementsAre(2, 4 + 0));
}

TEST(RowEncoderTest, AVectorIsMissingIfAPartIs) {
  const Encoded part = Encode("type: vector, columns: [a, b]", "3,", "yes", "id,a,b,f");
  EXPECT_EQ(part.error, "");
  EXPECT_THAT(part.columns, ElementsAre(2, 3));
  EXPECT_THAT(Encode("type: vector, columns: [a, b]", ",", "yes", "id,a,b,f").columns, ElementsAre(2, 3));
}

TEST(RowEncoderTest, ARowWithoutAnyValueIsNull) {
  EXPECT_THAT(Encode(kNumber, "").columns, IsEmpty());
  EXPECT_THAT(Encode("type: vector, width: 2", "NA").columns, IsEmpty());
}

TEST(RowEncoderTest, WordsAreCountedAtStablePlaces) {
  const Encoded once = Encode("type: text, width: 1000", "\"Rent  RENT, salary!\"");
  ASSERT_EQ(once.columns.size(), 3u);
  EXPECT_EQ(once.values[0] + once.values[1], 3);
  EXPECT_EQ(std::fabs(once.values[0] - once.values[1]), 1);
  // These places are part of the format: models are read by later versions.
  EXPECT_THAT(Encode("type: text, width: 1000", "rent").columns, ElementsAre(255, 1002 + 3));
  EXPECT_THAT(Encode("type: text, width: 1000", "?!").columns, ElementsAre(1000, 1002 + 3));
}

TEST(RowEncoderTest, LongTextWeighsAsMuchAsEightWords) {
  EXPECT_THAT(Encode("type: text, width: 1000", "rent rent rent rent rent rent rent rent").values, ElementsAre(8, 1));
  const Encoded longer = Encode("type: text, width: 1000", "a a a a a a a a a a a a b b b b");
  EXPECT_THAT(longer.values, ::testing::UnorderedElementsAre(6, 2, 1));
}

TEST(RowEncoderTest, AVectorKeepsItsDirectionUnderTheDefaultTransform) {
  for (const std::string cell : {"\"[3, -4]\"", "[3 -4]", "\"[3e200,-4e200]\""}) {
    const Encoded encoded = Encode("type: vector, width: 2", cell);
    EXPECT_EQ(encoded.error, "");
    EXPECT_THAT(encoded.values, ElementsAre(FloatEq(0.36F), FloatEq(-0.64F), 1.0F)) << cell;
    std::vector<float> phi(3);
    TransformEntries(v1::SQRT_UNIT, encoded.values, phi);
    EXPECT_THAT(phi, ElementsAre(FloatEq(0.6F), FloatEq(-0.8F), 1.0F));
  }
  EXPECT_THAT(Encode("type: vector, width: 2", "\"[0, 0]\"").columns, ElementsAre(3 + 3)) << "a vector without length";
  EXPECT_THAT(Encode("type: vector, columns: [a, b]", "3,-4", "yes", "id,a,b,f").values,
              ElementsAre(FloatEq(0.36F), FloatEq(-0.64F), 1.0F));
}

TEST(RowEncoderTest, EveryValueHasTheSameLength) {
  const std::string descriptions[] = {kNumber, "type: category, values: [3, 4]", "type: text, width: 50",
                                      "type: vector, width: 3"};
  const std::string cells[] = {"3.3", "4", "a", "\"[1,2,3]\""};
  for (size_t i = 0; i < 4; ++i) {
    const Encoded encoded = Encode(descriptions[i], cells[i]);
    float sum = 0;
    for (size_t entry = 0; entry + 1 < encoded.values.size(); ++entry) {
      sum += std::fabs(encoded.values[entry]);
    }
    EXPECT_FLOAT_EQ(sum, 1) << descriptions[i];
  }
}

TEST(RowEncoderTest, SaysWhatWasExpected) {
  EXPECT_THAT(Encode(kNumber, "FR").error,
              ::testing::EndsWith("row.csv line 2, column x: 'FR' is text; expected a number such as 1234.5"));
  EXPECT_THAT(Encode(kNumber, "inf").error, HasSubstr("expected a number"));
  EXPECT_THAT(Encode(kNumber, "\"1,5\"").error, HasSubstr("expected a number"));
  EXPECT_EQ(Encode(kNumber, "1,5", "", "id;x;f", ';').error, "") << "a decimal comma between semicolons";
  EXPECT_THAT(Encode("type: date, range: [2024-01-01, 2024-01-10]", "04.01.2024").error, HasSubstr("2024-12-31"));
  EXPECT_THAT(Encode("type: vector, width: 3", "\"[1,2]\"").error,
              HasSubstr("2 numbers; expected 3 numbers in brackets"));
  EXPECT_THAT(Encode("type: vector, width: 2", "\"[1,x]\"").error, HasSubstr("'x' is not a number"));
  EXPECT_THAT(Encode("type: vector, width: 1", "1").error, HasSubstr("not in brackets"));
  EXPECT_THAT(Encode("type: vector, columns: [a, b]", "3,x", "yes", "id,a,b,f").error, HasSubstr("column b: 'x'"));
  EXPECT_THAT(Encode(kNumber, "1", "", "id,z,f").error,
              HasSubstr("row.csv line 1, column z: the schema does not know"));
  EXPECT_THAT(Encode(kNumber, "1", "", "id,y,f").error, HasSubstr("column x: the schema declares it"));
}

}  // namespace
}  // namespace dpar
