#include "core/infer/model.h"

#include <cmath>
#include <limits>

#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::BytesOf;
using ::dpar::testing::RawNpyOf;
using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::WriteArrays;
using ::dpar::testing::WriteBytes;
using ::dpar::testing::WriteRawZip;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBadModel[] = "INVALID_ARGUMENT INVALID_FIELD field=model";

LinearModel Sample() { return {2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9}, R"({"method": "features"})"}; }

std::map<std::string, NpyArray> SampleArrays() {
  return {{"weights", NpyArray{{3, 3}, Sample().weights}}, {"header", NpyArray{{}, Sample().metadata}}};
}

std::string ReadWith(const std::map<std::string, NpyArray>& changes) {
  const std::string path = TestPath("model.npz");
  std::map<std::string, NpyArray> arrays = SampleArrays();
  for (const auto& [name, array] : changes) {
    arrays[name] = array;
  }
  EXPECT_TRUE(WriteArrays(path, arrays).ok());
  return Summary(ReadModelFile(path).status());
}

SparseRows OneRow(std::vector<float> values) {
  SparseRows rows;
  for (size_t i = 0; i < values.size(); ++i) {
    rows.columns.push_back(static_cast<int32_t>(i));
  }
  rows.offsets = {0, static_cast<int64_t>(values.size())};
  rows.values = std::move(values);
  return rows;
}

TEST(TransformRowsTest, TakesSquareRootsAndScalesToTheRowNorm) {
  const TransformedRows rows = TransformRows(OneRow({9, 16}));
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2));
  EXPECT_THAT(rows.columns, ElementsAre(0, 1));
  EXPECT_THAT(rows.values,
              ElementsAre(DoubleNear(std::sqrt(0.99) * 3 / 5, 1e-15), DoubleNear(std::sqrt(0.99) * 4 / 5, 1e-15)));
}

TEST(TransformRowsTest, CountsNegativeAndNonFiniteEntriesAsZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const TransformedRows rows = TransformRows(OneRow({-4, nan, infinity, 7, -infinity}));
  EXPECT_THAT(rows.columns, ElementsAre(3));
  EXPECT_THAT(rows.values, ElementsAre(DoubleNear(std::sqrt(0.99), 1e-15)));
}

TEST(TransformRowsTest, LeavesARowWithoutPositiveEntriesEmpty) {
  SparseRows features;
  features.offsets = {0, 1, 1, 2};
  features.columns = {0, 1};
  features.values = {-1, 4};
  const TransformedRows rows = TransformRows(features);
  EXPECT_THAT(rows.offsets, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(rows.columns, ElementsAre(1));
}

TEST(TransformRowsTest, BoundsTheNormWithTheBiasByOneWhateverTheScale) {
  for (const float scale : {1e-45F, 1e-30F, 1.0F, 1e30F, 3e38F}) {
    double sum = kBiasInput * kBiasInput;
    for (const double value : TransformRows(OneRow({scale, scale, scale})).values) {
      sum += value * value;
    }
    EXPECT_NEAR(sum, 1, 1e-15) << scale;
  }
}

TEST(ModelFileTest, GivesBackTheModelAndTheSameBytes) {
  const std::string path = TestPath("model.npz");
  ASSERT_TRUE(WriteModelFile(path, Sample()).ok());
  const auto model = ReadModelFile(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->feature_count, 2);
  EXPECT_EQ(model->class_count, 3);
  EXPECT_EQ(model->weights, Sample().weights);
  EXPECT_EQ(model->metadata, Sample().metadata);
  ASSERT_TRUE(WriteModelFile(TestPath("again.npz"), *model).ok());
  EXPECT_EQ(ReadBytes(TestPath("again.npz")), ReadBytes(path));
}

TEST(ModelFileTest, ReadsAHeaderThatNumpyWroteAsText) {
  const std::string path = TestPath("numpy.npz");
  WriteRawZip(path, {{"weights.npy", RawNpyOf("<f4", "(2, 1)", BytesOf<float>({1, 2}))},
                     {"header.npy", RawNpyOf("<U2", "()", BytesOf<uint32_t>({'{', '}'}))}});
  const auto model = ReadModelFile(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->metadata, "{}");
}

TEST(ModelFileTest, WritesNoModelThatCouldNotBeRead) {
  LinearModel model = Sample();
  model.weights.pop_back();
  EXPECT_EQ(Summary(WriteModelFile(TestPath("bad.npz"), model)), kBadModel);
  model = Sample();
  model.weights[4] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Summary(WriteModelFile(TestPath("bad.npz"), model)), kBadModel);
  model = Sample();
  model.metadata = "features";
  EXPECT_EQ(Summary(WriteModelFile(TestPath("bad.npz"), model)), kBadModel);
}

TEST(ModelFileTest, SaysWhenThereIsNoSuchFile) {
  EXPECT_TRUE(absl::IsNotFound(ReadModelFile("/nonexistent/model.npz").status()));
}

TEST(ModelFileTest, RefusesWeightsOfTheWrongKindOrShape) {
  EXPECT_EQ(ReadWith({{"weights", NpyArray{{3, 3}, std::vector<double>(9, 1)}}}), kBadModel);
  EXPECT_EQ(ReadWith({{"weights", NpyArray{{9}, std::vector<float>(9, 1)}}}), kBadModel);
  EXPECT_EQ(ReadWith({{"weights", NpyArray{{1, 9}, std::vector<float>(9, 1)}}}), kBadModel);
  EXPECT_EQ(ReadWith({{"weights", NpyArray{{9, 0}, std::vector<float>()}}}), kBadModel);
  EXPECT_EQ(ReadWith({{"weights", NpyArray{{3, 3, 1}, std::vector<float>(9, 1)}}}), kBadModel);
  EXPECT_EQ(ReadWith({}), "OK");
}

TEST(ModelFileTest, RefusesWeightsThatAreNotFinite) {
  std::vector<float> weights(9, 1);
  weights[8] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ReadWith({{"weights", NpyArray{{3, 3}, weights}}}), kBadModel);
}

TEST(ModelFileTest, RefusesHeadersThatAreNotAJsonObject) {
  for (const std::string& header :
       {std::string(), std::string("[]"), std::string("null"), std::string("{"), std::string("{\"a\": \"\xff\"}"),
        std::string("{} trailing"), std::string(100'000, '['), "\"" + std::string(2 << 20, 'a') + "\""}) {
    EXPECT_EQ(ReadWith({{"header", NpyArray{{}, header}}}), kBadModel);
  }
  EXPECT_EQ(ReadWith({{"header", NpyArray{{2}, std::vector<float>{1, 2}}}}), kBadModel);
}

TEST(ModelFileTest, RefusesHostileFilesAsABadModel) {
  const std::string path = TestPath("hostile.npz");
  WriteBytes(path, "not a model");
  EXPECT_EQ(Summary(ReadModelFile(path).status()), kBadModel);
  WriteRawZip(path, {{"weights.npy", RawNpyOf("<f4", "(2, 1)", BytesOf<float>({1, 2}))}});
  EXPECT_EQ(Summary(ReadModelFile(path).status()), kBadModel);
  WriteRawZip(path, {{"weights.npy", RawNpyOf("|O", "(2, 1)", "pickle")}, {"header.npy", RawNpyOf("|S2", "()", "{}")}});
  const absl::Status status = ReadModelFile(path).status();
  EXPECT_EQ(Summary(status), kBadModel);
  EXPECT_THAT(std::string(status.message()), HasSubstr("never unpickled"));
}

TEST(ModelFileTest, NeverCrashesWhicheverByteChangesOrWhereverItIsCutOff) {
  const std::string path = TestPath("damaged.npz");
  ASSERT_TRUE(WriteModelFile(path, Sample()).ok());
  const std::string whole = ReadBytes(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    WriteBytes(path, whole.substr(0, at));
    ASSERT_EQ(Summary(ReadModelFile(path).status()), kBadModel) << at;
    std::string bytes = whole;
    bytes[at] = static_cast<char>(~bytes[at]);
    WriteBytes(path, bytes);
    const auto model = ReadModelFile(path);
    ASSERT_TRUE(model.ok() ? model->weights == Sample().weights : Summary(model.status()) == kBadModel) << at;
  }
}

}  // namespace
}  // namespace dpar
