#include "core/graph/feature_scales.h"

#include <limits>
#include <map>
#include <string>

#include "core/graph/testing/npz_fixture.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::VectorArray;
using ::dpar::testing::WriteArrays;
using Arrays = std::map<std::string, NpyArray>;
using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

Arrays Edges() {
  return {{"adj_data", VectorArray(Ints{1})},
          {"adj_indices", VectorArray(Ints{1})},
          {"adj_indptr", VectorArray(Ints{0, 1, 1})},
          {"adj_shape", VectorArray(Ints{2, 2})},
          {"labels", VectorArray(Ints{0, 1})}};
}

// Rows (2, -0.5, 0, 0) and (0, 0.25, 300, stored 0).
Arrays Sparse() {
  Arrays arrays = Edges();
  arrays["attr_data"] = VectorArray(Floats{2, -0.5, 0.25, 300, 0});
  arrays["attr_indices"] = VectorArray(Ints{0, 1, 1, 2, 3});
  arrays["attr_indptr"] = VectorArray(Ints{0, 2, 5});
  arrays["attr_shape"] = VectorArray(Ints{2, 4});
  return arrays;
}

Arrays Dense() {
  Arrays arrays = Edges();
  arrays["attr_matrix"] = NpyArray{{2, 4}, Floats{2, -0.5, 0, 0, 0, 0.25, 300, 0}};
  return arrays;
}

absl::StatusOr<FeatureScales> Read(const Arrays& arrays, const GraphLimits& limits = {}) {
  const std::string path = TestPath("graph.npz");
  EXPECT_TRUE(WriteArrays(path, arrays).ok());
  return ReadFeatureScales(path, limits);
}

constexpr FeatureScales kExpected = {.columns = 3, .negative_columns = 1, .smallest = 0.5, .largest = 300};

TEST(FeatureScalesTest, AreThoseOfTheGraphAndOfItsFileSparseOrDense) {
  for (const Arrays& arrays : {Sparse(), Dense()}) {
    const auto read = Read(arrays);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, kExpected);
    const auto imported = ReadGraphFile(TestPath("graph.npz"), GraphLimits(), std::nullopt);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(MeasureFeatures(imported->graph), kExpected);
  }
}

TEST(FeatureScalesTest, AFileWhoseFeaturesCannotBeReadIsRefused) {
  Arrays arrays = Sparse();
  arrays["attr_indices"] = VectorArray(Ints{0, 1, 1, 4, 3});
  EXPECT_EQ(Summary(Read(arrays).status()), "INVALID_ARGUMENT INVALID_GRAPH array=attr_indices position=3");
  arrays["attr_indices"] = VectorArray(Ints{0, 1, 1, 2});
  EXPECT_EQ(Summary(Read(arrays).status()), "INVALID_ARGUMENT INVALID_GRAPH array=attr_data");
  arrays = Sparse();
  arrays["attr_data"] = VectorArray(Floats{2, -0.5, std::numeric_limits<float>::quiet_NaN(), 300, 0});
  EXPECT_EQ(Summary(Read(arrays).status()), "INVALID_ARGUMENT INVALID_GRAPH array=attr_data position=2");
  GraphLimits limits;
  limits.max_feature_entries = 4;
  EXPECT_EQ(Summary(Read(Sparse(), limits).status()),
            "RESOURCE_EXHAUSTED LIMIT_EXCEEDED limit=max_feature_entries maximum=4");
  EXPECT_EQ(ReadFeatureScales(TestPath("missing.npz"), GraphLimits()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar
