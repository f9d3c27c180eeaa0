// Rows that are hard to sum: parts that cancel, huge and unrepresentable features, what is not finite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "core/pace.h"
#include "core/plan/plan_event.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/device.h"
#include "core/train/engine.h"
#include "core/train/testing/per_row_autograd.h"
#include "core/train/testing/random_rows.h"

namespace dpar {
namespace {

using ::dpar::testing::AllRows;
using ::dpar::testing::Distance;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::Norm;
using ::dpar::testing::PerRowAutograd;
using ::dpar::testing::RandomFeatures;
using ::dpar::testing::RandomRows;
using ::dpar::testing::RandomWeights;
using ::dpar::testing::Reference;

bool Continue() { return true; }

// Two entries that all but cancel: what the scale is applied to has a norm far above the gradient's.
TEST(EngineFaults, RowsWhosePartsCancelAreScaledByTheirParts) {
  FixedRandom random(33);
  const Graph graph = RandomFeatures(20, 10, 3, 0.5, random);
  RowList rows;
  rows.labels = {0};
  rows.offsets = {0, 2};
  rows.slots = {7, 7};
  rows.weights = {1, -1 + 1e-6};
  const InputTransform transform(v1::SQRT_UNIT, {});
  constexpr double kClip = 1e-6;
  for (const int64_t hidden : {0, 6}) {
    const WeightShape shape{11, hidden, 3};
    const std::vector<float> weights = RandomWeights(shape, 1, random);
    const PreparedRows prepared(graph, transform, rows, hidden > 0, Continue);
    const auto norm_of = [&](GradientEngine& engine, double clip) {
      std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
      EXPECT_TRUE(engine.Sum(weights, {{0}}, clip, sum).ok());
      return Norm(sum);
    };
    for (const bool torch : {false, true}) {
      const auto engine =
          torch ? MakeTorchEngine(prepared, shape, "cpu", Continue) : MakeCpuEngine(prepared, shape, 1, Continue);
      const double scale = norm_of(*engine, kClip) / norm_of(*engine, std::numeric_limits<double>::infinity());
      // The parts' norms are about 1, or what flows back through the layer: at least 0.01 here.
      EXPECT_LE(scale, kMaxCancellation * kClip / 0.01) << "hidden " << hidden;
      EXPECT_GT(scale, 0);
    }
  }
}

// Rows of 3,000 entries that are hard to hold in few bits: next to a unit, which is the largest entry in 18 bits, or in
// 17 where there may be a sign, they lie far apart, or all of them between two multiples.
class HardRowsTest : public ::testing::TestWithParam<std::tuple<v1::Transform, float>> {
 protected:
  static constexpr int64_t kFeatures = 3000;
  static constexpr int64_t kHardRows = 8;

  // The entry of a row at a column, as it is after the transform.
  [[nodiscard]] double Entry(int64_t row, int64_t column) const {
    const double units = transform_ == v1::SQRT_UNIT ? 0x1p18 - 1 : 0x1p17 - 1;
    const double sign = transform_ == v1::SQRT_UNIT || column % 3 > 0 ? 1 : -1;
    if (column == 0) {
      return 1;
    }
    switch (row) {
      case 0:
        return 0.49 / units;  // lost next to 1, though all of them together are not
      case 1:
        return 0.51 / units;  // as much too large
      case 2:
        return sign * (std::floor(0.95 * units) + 0.45) / units;  // all rounded towards 0
      case 3:
        return sign * (std::floor(0.95 * units) + 0.55) / units;  // all rounded away from it: the row becomes longer
      case 4:
        return sign * std::exp2(-static_cast<double>(column) / 100);
      case 5:
        return sign * 0.51 / units;
      case 6:
        return sign * (column < 10 ? 1 : 1e-3);
      default:
        return 1;
    }
  }

  HardRowsTest() {
    for (size_t i = 0; i < graph_.features.values.size(); ++i) {
      const double entry = Entry(static_cast<int64_t>(i) / kFeatures, static_cast<int64_t>(i) % kFeatures);
      graph_.features.values[i] = static_cast<float>(transform_ == v1::SQRT_UNIT ? entry * entry : entry);
    }
  }

  FixedRandom random_{35};
  const v1::Transform transform_ = std::get<0>(GetParam());
  const std::vector<float> center_ =
      std::vector<float>(std::get<1>(GetParam()) > 0 ? kFeatures : 0, std::get<1>(GetParam()));
  const InputTransform input_{transform_, center_};
  Graph graph_ = RandomFeatures(kHardRows, kFeatures, 3, 1.0, random_);
  const WeightShape shape_{kFeatures + 1, 0, 3};
  const std::vector<float> weights_ = RandomWeights(shape_, 1, random_);
};

TEST_P(HardRowsTest, TheFullBatchEngineEqualsPerRowAutogradAndKeepsTheBound) {
  for (int64_t row = 0; row < kHardRows; ++row) {
    RowList rows = IdentityRows(graph_);
    std::fill(rows.labels.begin(), rows.labels.end(), kUnlabelled);
    rows.labels[static_cast<size_t>(row)] = 1;
    const PreparedRows prepared(graph_, input_, rows, false, Continue);
    const auto engine = MakeFullBatchEngine(prepared, shape_, 1, Continue);
    for (const double clip : {1e-3, std::numeric_limits<double>::infinity()}) {
      std::vector<double> sum(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
      EXPECT_TRUE(engine->Sum(weights_, AllRows(kHardRows), clip, sum).ok());
      EXPECT_LE(Norm(sum), clip) << "row " << row;
      sum.resize(static_cast<size_t>(shape_.count()));
      const Reference reference = PerRowAutograd(graph_, rows, transform_, center_, shape_, weights_, clip);
      EXPECT_LE(Distance(sum, reference.sum), 1e-5 * Norm(reference.sum)) << "row " << row << ", clip " << clip;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transforms, HardRowsTest,
                         ::testing::Combine(::testing::Values(v1::RAW, v1::UNIT, v1::SQRT_UNIT),
                                            ::testing::Values(0.0F, 0.001F, 0.011F)));

// Features far from 1, which RAW leaves as they are.
TEST(EngineFaults, NoEngineExceedsTheBoundForHugeFeatures) {
  FixedRandom random(34);
  for (const float value : {1e-38F, 1.0F, 1e30F, 2.07e38F, 3.4e38F}) {
    Graph graph = RandomFeatures(9, 7, 3, 0.8, random);
    std::fill(graph.features.values.begin(), graph.features.values.end(), value);
    const InputTransform transform(v1::RAW, {});
    const WeightShape shape{8, 0, 3};
    const std::vector<float> weights(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0F);
    for (int64_t row = 0; row < 9; ++row) {
      RowList rows = IdentityRows(graph);
      for (int64_t other = 0; other < 9; ++other) {
        rows.labels[static_cast<size_t>(other)] = other == row ? 1 : kUnlabelled;
      }
      const PreparedRows prepared(graph, transform, rows, false, Continue);
      for (const double clip : {1e-6, 1.0, 1e3}) {
        std::vector<std::unique_ptr<GradientEngine>> engines;
        engines.push_back(MakeCpuEngine(prepared, shape, 1, Continue));
        engines.push_back(MakeFullBatchEngine(prepared, shape, 1, Continue));
        engines.push_back(MakeTorchEngine(prepared, shape, "cpu", Continue));
        for (const auto& engine : engines) {
          std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
          EXPECT_TRUE(engine->Sum(weights, AllRows(9), clip, sum).ok());
          EXPECT_LE(Norm(sum), clip) << value << ", clip " << clip;
        }
      }
    }
  }
}

// Values that are not finite, in the features or on the way to the gradient.
TEST(EngineFaults, ARowWhoseGradientIsNotFiniteContributesNothing) {
  FixedRandom random(31);
  Graph graph = RandomFeatures(20, 10, 3, 0.5, random);
  graph.features.values[0] = std::numeric_limits<float>::quiet_NaN();
  graph.features.values[1] = std::numeric_limits<float>::infinity();
  for (const int64_t hidden : {0, 6}) {
    const WeightShape shape{11, hidden, 3};
    std::vector<float> weights = RandomWeights(shape, 1, random);
    // Rows with feature 4 overflow; the others do not notice.
    for (int64_t k = 0; k < shape.width(); ++k) {
      weights[static_cast<size_t>(4 * shape.width() + k)] = 3e38F * (k % 2 == 0 ? 1.0F : -1.0F);
    }
    RowList rows = IdentityRows(graph);
    const InputTransform transform(v1::RAW, {});
    const PreparedRows prepared(graph, transform, rows, hidden > 0, Continue);
    RowList healthy = rows;
    for (int64_t slot = 0; slot < 20; ++slot) {
      const auto columns = GraphView(graph).features.row_columns(slot);
      if (std::find(columns.begin(), columns.end(), 4) != columns.end()) {
        healthy.labels[static_cast<size_t>(slot)] = kUnlabelled;
      }
    }
    const PreparedRows prepared_healthy(graph, transform, healthy, hidden > 0, Continue);
    const auto sum_of = [&](GradientEngine& engine) {
      std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
      EXPECT_TRUE(engine.Sum(weights, AllRows(20), 0.3, sum).ok());
      for (const double value : sum) {
        EXPECT_TRUE(std::isfinite(value));
      }
      return sum;
    };
    // Some overflowing rows still have a finite residual; each contributes at most C.
    const std::vector<double> all = sum_of(*MakeCpuEngine(prepared, shape, 1, Continue));
    const std::vector<double> few = sum_of(*MakeCpuEngine(prepared_healthy, shape, 1, Continue));
    EXPECT_LE(Distance(all, few), 20 * 0.3);
    EXPECT_GT(Norm(few), 0);
    sum_of(*MakeTorchEngine(prepared, shape, "cpu", Continue));
  }
}

TEST(EngineFaults, WeightsThatAreNotNumbersGiveNoGradientAtAll) {
  FixedRandom random(32);
  const Graph graph = RandomFeatures(20, 10, 3, 0.5, random);
  const RowList rows = IdentityRows(graph);
  const InputTransform transform(v1::SQRT_UNIT, {});
  for (const int64_t hidden : {0, 6}) {
    const WeightShape shape{11, hidden, 3};
    const std::vector<float> weights(static_cast<size_t>(shape.count()) + kWeightPadding,
                                     std::numeric_limits<float>::quiet_NaN());
    const PreparedRows prepared(graph, transform, rows, hidden > 0, Continue);
    std::vector<std::unique_ptr<GradientEngine>> engines;
    engines.push_back(MakeCpuEngine(prepared, shape, 1, Continue));
    engines.push_back(MakeTorchEngine(prepared, shape, "cpu", Continue));
    if (hidden == 0) {
      engines.push_back(MakeFullBatchEngine(prepared, shape, 1, Continue));
    }
    for (const auto& engine : engines) {
      std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
      EXPECT_TRUE(engine->Sum(weights, AllRows(20), 0.3, sum).ok());
      EXPECT_THAT(sum, ::testing::Each(0.0)) << "hidden " << hidden;
    }
  }
}

}  // namespace
}  // namespace dpar
