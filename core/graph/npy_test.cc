#include "core/graph/npy.h"

#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::Summary;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRefused[] = "INVALID_ARGUMENT INVALID_GRAPH array=x";

std::string Dictionary(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }  \n";
}

TEST(ParseNpyHeaderTest, ReadsWhatNumpyWrites) {
  const auto header = ParseNpyHeader("x", Dictionary("<f4", "(3, 5)"));
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->kind, NpyKind::kFloat);
  EXPECT_EQ(header->item_bytes, 4);
  EXPECT_THAT(header->shape, ElementsAre(3, 5));
  EXPECT_EQ(header->count, 15);
}

TEST(ParseNpyHeaderTest, ReadsScalarsVectorsAndOtherSpellings) {
  EXPECT_THAT(ParseNpyHeader("x", Dictionary("<i8", "()"))->shape, IsEmpty());
  EXPECT_EQ(ParseNpyHeader("x", Dictionary("<i8", "()"))->count, 1);
  EXPECT_THAT(ParseNpyHeader("x", Dictionary("<i8", "(7,)"))->shape, ElementsAre(7));
  EXPECT_THAT(ParseNpyHeader("x", Dictionary("<i8", "(7L, 2L)"))->shape, ElementsAre(7, 2));
  EXPECT_THAT(ParseNpyHeader("x", "{\"shape\":(2,),\"descr\":\"|u1\",\"fortran_order\":False}")->shape, ElementsAre(2));
  EXPECT_EQ(ParseNpyHeader("x", Dictionary("|b1", "(0,)"))->count, 0);
}

TEST(ParseNpyHeaderTest, ReadsBackItsOwnHeaders) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, std::vector<int64_t>{12}, std::vector<int64_t>{3, 4}, std::vector<int64_t>{1, 0, 9}}) {
    const std::string header = MakeNpyHeader("<i4", shape);
    EXPECT_EQ(header.size() % 64, 0U);
    const auto parsed = ParseNpyHeader("x", header.substr(10));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->shape, shape);
  }
}

TEST(ParseNpyHeaderTest, RefusesObjectArraysByName) {
  for (const char* descr : {"|O", "O", "<O8", "|O8"}) {
    const auto header = ParseNpyHeader("x", Dictionary(descr, "(3,)"));
    EXPECT_EQ(Summary(header.status()), kRefused);
    EXPECT_THAT(std::string(header.status().message()), HasSubstr("never unpickled"));
  }
}

TEST(ParseNpyHeaderTest, RefusesBigEndianNumbers) {
  for (const char* descr : {">i4", ">f8", ">u2", ">U3"}) {
    const auto header = ParseNpyHeader("x", Dictionary(descr, "()"));
    EXPECT_EQ(Summary(header.status()), kRefused);
    EXPECT_THAT(std::string(header.status().message()), HasSubstr("big-endian"));
  }
}

TEST(ParseNpyHeaderTest, RefusesUnsupportedTypes) {
  for (const char* descr : {"<f2", "<f16", "<c8", "<M8", "<M8[ns]", "|V8", "<i3", "<i0", "<i", "i", "", "<", "<i-4",
                            "<i4x", "<i99999999999", "=i4", "<f 4"}) {
    const auto header = ParseNpyHeader("x", Dictionary(descr, "(2,)"));
    EXPECT_EQ(Summary(header.status()), kRefused) << descr;
    EXPECT_THAT(std::string(header.status().message()), HasSubstr("unsupported type")) << descr;
  }
}

TEST(ParseNpyHeaderTest, RefusesFortranOrderOnlyWhereItMatters) {
  const auto matrix = ParseNpyHeader("x", Dictionary("<f4", "(2, 3)", "True"));
  EXPECT_EQ(Summary(matrix.status()), kRefused);
  EXPECT_THAT(std::string(matrix.status().message()), HasSubstr("Fortran"));
  EXPECT_TRUE(ParseNpyHeader("x", Dictionary("<f4", "(2,)", "True")).ok());
}

TEST(ParseNpyHeaderTest, RefusesArraysOfText) {
  EXPECT_EQ(Summary(ParseNpyHeader("x", Dictionary("<U4", "(2,)")).status()), kRefused);
  EXPECT_TRUE(ParseNpyHeader("x", Dictionary("<U4", "()")).ok());
}

TEST(ParseNpyHeaderTest, RefusesShapesThatOverflow) {
  for (const char* shape : {"(4611686018427387904,)", "(3037000500, 3037000500)", "(1152921504606846976, 8)",
                            "(99999999999999999999,)", "(2305843009213693952,)"}) {
    EXPECT_EQ(Summary(ParseNpyHeader("x", Dictionary("<i8", shape)).status()), kRefused) << shape;
  }
}

TEST(ParseNpyHeaderTest, RefusesMalformedDictionaries) {
  const std::string malformed[] = {
      "",
      "{",
      "{}",
      "hello",
      "{'descr': '<i4', 'fortran_order': False}",
      "{'descr': '<i4', 'shape': (2,)}",
      "{'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)} trailing",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (-2,)}",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2.5,)}",
      "{'descr': '<i4', 'fortran_order': False, 'shape': [2]}",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (,)}",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
      "{'descr': '<i4', 'fortran_order': 0, 'shape': (2,)}",
      "{'descr': '<i4, 'fortran_order': False, 'shape': (2,)}",
      "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,)}",
      "{'descr' '<i4', 'fortran_order': False, 'shape': (2,)}",
      "__import__('os').system('true')",
  };
  for (const std::string& dictionary : malformed) {
    EXPECT_EQ(Summary(ParseNpyHeader("x", dictionary).status()), kRefused) << dictionary;
  }
}

}  // namespace
}  // namespace dpar
