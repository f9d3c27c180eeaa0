#include "core/infer/onnx_file.h"

#include <filesystem>
#include <limits>

#include "core/graph/testing/npz_fixture.h"
#include "core/infer/safetensors_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// What the files hold is checked where ONNX is at hand: client/python/tests/formats_test.py.

namespace dpar {
namespace {

using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;

Model SmallModel() {
  Model model;
  model.feature_count = 2;
  model.class_count = 2;
  model.weights = {1, 2, 3, 4, 5, 6};
  model.schema = R"({"nodes":{}})";
  return model;
}

using Write = absl::Status (*)(const std::string& path, const Model& model);
constexpr Write kFormats[] = {WriteOnnxFile, WriteSafetensorsFile};

TEST(ModelFormatsTest, TheSameModelGivesTheSameBytesWhateverTheName) {
  for (const Write write : kFormats) {
    ASSERT_TRUE(write(TestPath("one"), SmallModel()).ok());
    ASSERT_TRUE(write(TestPath("another"), SmallModel()).ok());
    const std::string bytes = ReadBytes(TestPath("one"));
    EXPECT_EQ(bytes, ReadBytes(TestPath("another")));
    EXPECT_THAT(bytes, ::testing::HasSubstr("SQRT_UNIT"));
  }
}

TEST(ModelFormatsTest, SizesDoNotFollowTheWeights) {
  Model other = SmallModel();
  other.weights = {0, 0, 0, 0, 0, std::numeric_limits<float>::denorm_min()};
  for (const Write write : kFormats) {
    ASSERT_TRUE(write(TestPath("one"), SmallModel()).ok());
    ASSERT_TRUE(write(TestPath("other"), other).ok());
    EXPECT_EQ(ReadBytes(TestPath("one")).size(), ReadBytes(TestPath("other")).size());
  }
}

TEST(ModelFormatsTest, SaysThatAFileCannotBeWrittenAndLeavesNothing) {
  const std::filesystem::path directory = TestPath("full");
  for (const Write write : kFormats) {
    EXPECT_EQ(Summary(write("/nonexistent/model", SmallModel())), "INVALID_ARGUMENT INVALID_FIELD field=output");
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory / "model" / "in the way");
    EXPECT_FALSE(write(directory / "model", SmallModel()).ok());
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()), 1);
  }
}

TEST(ModelFormatsTest, RefuseAModelThatIsNotValid) {
  Model model = SmallModel();
  model.weights[0] = std::numeric_limits<float>::infinity();
  for (const Write write : kFormats) {
    EXPECT_EQ(Summary(write(TestPath("bad"), model)), "INVALID_ARGUMENT INVALID_FIELD field=model");
  }
}

TEST(OnnxFileTest, FitsBelowTwoGibibytes) {
  Model model = SmallModel();
  EXPECT_TRUE(FitsOnnx(model));
  model.schema.assign(size_t{1} << 31, ' ');
  EXPECT_FALSE(FitsOnnx(model));
}

}  // namespace
}  // namespace dpar
