// Both engines against per-row autograd.
#include "core/train/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "core/graph/testing/questions.h"
#include "core/pace.h"
#include "core/plan/plan_event.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/device.h"
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

struct Case {
  std::string name;
  int64_t k = 1;
  int64_t hidden = 0;
  double density = 0.2;
  v1::Transform transform = v1::SQRT_UNIT;
  bool center = false;
  double weight_scale = 1;
};

void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.name; }

class EngineTest : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr int64_t kNodes = 60;
  static constexpr int64_t kFeatures = 37;
  static constexpr int64_t kClasses = 5;
  static constexpr int64_t kRows = 30;

  EngineTest()
      : random_(17),
        graph_(RandomFeatures(kNodes, kFeatures, kClasses, GetParam().density, random_)),
        rows_(RandomRows(graph_, kRows, GetParam().k, random_)),
        shape_{kFeatures + 1, GetParam().hidden, kClasses},
        weights_(RandomWeights(shape_, GetParam().weight_scale, random_)) {
    rows_.labels[3] = kUnlabelled;
    if (GetParam().center) {
      center_ = RandomWeights({kFeatures, 0, 1}, 0.1, random_);
      center_.resize(static_cast<size_t>(kFeatures));
    }
  }

  std::vector<double> Sum(GradientEngine& engine, const std::vector<int64_t>& batch, double clip) const {
    std::vector<double> sum(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
    const absl::Status status = engine.Sum(weights_, batch, clip, sum);
    EXPECT_TRUE(status.ok()) << status;
    for (size_t i = static_cast<size_t>(shape_.count()); i < sum.size(); ++i) {
      EXPECT_EQ(sum[i], 0) << "padding stays 0";
    }
    sum.resize(static_cast<size_t>(shape_.count()));
    return sum;
  }

  // Summed gradients at several bounds, and each row's own norm, which an infinite bound shows.
  void ExpectAgrees(GradientEngine& engine, double tolerance) const {
    for (const double clip : {1e-3, 0.3, 2.0, std::numeric_limits<double>::infinity()}) {
      const Reference reference = PerRowAutograd(graph_, rows_, GetParam().transform, center_, shape_, weights_, clip);
      const std::vector<double> sum = Sum(engine, AllRows(kRows), clip);
      EXPECT_LE(Distance(sum, reference.sum), tolerance * std::max(Norm(reference.sum), 1e-12)) << "clip " << clip;
      for (int64_t row = 0; row < kRows; ++row) {
        const double norm = Norm(Sum(engine, {row}, clip));
        const double own = reference.norms[static_cast<size_t>(row)];
        // Rounding is relative to the logits, so that the small gradient of a confident row is no more exact than
        // others.
        EXPECT_NEAR(norm, std::min(own, clip), tolerance * std::min(std::max(own, 0.1), clip))
            << "row " << row << ", clip " << clip;
        if (own > clip) {
          EXPECT_LE(norm, clip * kClipGuard * (1 + 1e-12)) << "the guard is there, row " << row;
        }
      }
    }
  }

  FixedRandom random_;
  const Graph graph_;
  RowList rows_;
  const WeightShape shape_;
  const std::vector<float> weights_;
  std::vector<float> center_;
};

TEST_P(EngineTest, TheCpuEngineEqualsPerRowAutograd) {
  const InputTransform transform(GetParam().transform, center_);
  const PreparedRows prepared(graph_, transform, rows_, GetParam().hidden > 0, Continue);
  const auto engine = MakeCpuEngine(prepared, shape_, 1, Continue);
  ExpectAgrees(*engine, 1e-5);
}

TEST_P(EngineTest, TheTorchEngineEqualsPerRowAutograd) {
  const InputTransform transform(GetParam().transform, center_);
  const PreparedRows prepared(graph_, transform, rows_, GetParam().hidden > 0, Continue);
  const auto engine = MakeTorchEngine(prepared, shape_, "cpu", Continue);
  ExpectAgrees(*engine, 1e-5);
}

TEST_P(EngineTest, ACudaDeviceEqualsPerRowAutograd) {
  const std::string device = AvailableDevices().front();
  if (device == "cpu") {
    GTEST_SKIP() << "there is no CUDA device on this machine";
  }
  const InputTransform transform(GetParam().transform, center_);
  const PreparedRows prepared(graph_, transform, rows_, GetParam().hidden > 0, Continue);
  const auto engine = MakeTorchEngine(prepared, shape_, device, Continue);
  ExpectAgrees(*engine, 1e-5);
}

TEST_P(EngineTest, TheFullBatchEngineEqualsPerRowAutograd) {
  if (GetParam().hidden > 0) {
    GTEST_SKIP() << "it takes no hidden layer";
  }
  const InputTransform transform(GetParam().transform, center_);
  // All rows, and then each alone.
  for (int64_t live = -1; live < kNodes; ++live) {
    RowList rows = IdentityRows(graph_);
    for (int64_t row = 0; row < kNodes; ++row) {
      rows.labels[static_cast<size_t>(row)] =
          live < 0 || row == live ? rows.labels[static_cast<size_t>(row)] : kUnlabelled;
    }
    const PreparedRows prepared(graph_, transform, rows, false, Continue);
    const auto engine = MakeFullBatchEngine(prepared, shape_, 1, Continue);
    for (const double clip : {1e-3, 0.3, 2.0, std::numeric_limits<double>::infinity()}) {
      const Reference reference = PerRowAutograd(graph_, rows, GetParam().transform, center_, shape_, weights_, clip);
      EXPECT_LE(Distance(Sum(*engine, AllRows(kNodes), clip), reference.sum), 1e-5 * Norm(reference.sum))
          << "row " << live << ", clip " << clip;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EngineTest,
                         ::testing::Values(Case{"linear", 1, 0}, Case{"linear_pairs", 2, 0},
                                           Case{"linear_centered", 1, 0, 0.2, v1::SQRT_UNIT, true},
                                           Case{"linear_centered_rows", 7, 0, 0.2, v1::UNIT, true},
                                           Case{"linear_dense", 3, 0, 1.0, v1::RAW, false, 0.1},
                                           Case{"linear_wide_rows", 64, 0, 0.2, v1::SQRT_UNIT, false, 0.2},
                                           Case{"hidden", 1, 32},
                                           Case{"hidden_pairs", 2, 32, 0.2, v1::SQRT_UNIT, false, 0.5},
                                           Case{"hidden_odd", 5, 13, 0.2, v1::UNIT, false, 0.5},
                                           Case{"hidden_centered", 3, 8, 0.2, v1::SQRT_UNIT, true},
                                           Case{"hidden_dense", 4, 70, 1.0, v1::RAW, false, 0.1},
                                           Case{"hidden_wide_rows", 64, 9, 0.2, v1::SQRT_UNIT, false, 0.3},
                                           Case{"hidden_small_weights", 2, 32, 0.2, v1::SQRT_UNIT, false, 0.01}),
                         [](const ::testing::TestParamInfo<Case>& tested) { return tested.param.name; });

// Enough rows for several blocks.
class BlocksTest : public ::testing::Test {
 protected:
  static constexpr int64_t kNodes = 2 * kSummationBlock + 321;

  FixedRandom random_{23};
  const Graph graph_ = RandomFeatures(kNodes, 20, 3, 0.2, random_);
  const RowList rows_ = IdentityRows(graph_);
  const InputTransform transform_{v1::SQRT_UNIT, {}};
  const PreparedRows prepared_{graph_, transform_, rows_, false, Continue};
  const WeightShape shape_{21, 0, 3};
  const std::vector<float> weights_ = RandomWeights(shape_, 1, random_);

  std::vector<double> Sum(GradientEngine& engine, const std::vector<int64_t>& batch) const {
    std::vector<double> sum(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
    EXPECT_TRUE(engine.Sum(weights_, batch, 0.3, sum).ok());
    return sum;
  }
};

TEST_F(BlocksTest, TheSumDoesNotDependOnTheNumberOfThreads) {
  const auto one = MakeCpuEngine(prepared_, shape_, 1, Continue);
  const std::vector<double> expected = Sum(*one, AllRows(kNodes));
  for (const int threads : {2, 3, 8}) {
    const auto many = MakeCpuEngine(prepared_, shape_, threads, Continue);
    EXPECT_EQ(Sum(*many, AllRows(kNodes)), expected) << threads;
  }
  const auto torch = MakeTorchEngine(prepared_, shape_, "cpu", Continue);
  EXPECT_LE(Distance(Sum(*torch, AllRows(kNodes)), expected), 1e-5 * Norm(expected));
}

TEST_F(BlocksTest, TheFullBatchEngineEqualsTheOthersWhateverItsThreads) {
  std::vector<float> center(20, 0.03F);
  const Graph without = testing::WithNull(graph_, 7);
  RowList rows = IdentityRows(without);
  for (const bool centered : {false, true}) {
    for (const int64_t classes : {2, 3, 8, 15, 17, 40}) {
      for (int32_t& label : rows.labels) {
        label = std::min(label, static_cast<int32_t>(classes) - 1);
      }
      const WeightShape shape{21, 0, classes};
      const std::vector<float> weights = RandomWeights(shape, 2, random_);
      const InputTransform transform(v1::SQRT_UNIT,
                                     centered ? std::span<const float>(center) : std::span<const float>());
      const PreparedRows prepared(without, transform, rows, false, Continue);
      const auto sum_of = [&](const std::unique_ptr<GradientEngine>& engine, double clip) {
        std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
        EXPECT_TRUE(engine->Sum(weights, AllRows(kNodes), clip, sum).ok());
        return sum;
      };
      for (const double clip : {0.01, 0.3, std::numeric_limits<double>::infinity()}) {
        const std::vector<double> expected = sum_of(MakeCpuEngine(prepared, shape, 1, Continue), clip);
        const std::vector<double> one = sum_of(MakeFullBatchEngine(prepared, shape, 1, Continue), clip);
        EXPECT_LE(Distance(one, expected), 3e-6 * Norm(expected)) << classes << " classes, clip " << clip;
        EXPECT_EQ(sum_of(MakeFullBatchEngine(prepared, shape, 3, Continue), clip), one);
      }
    }
  }
}

TEST_F(BlocksTest, TheFullBatchEngineClipsEveryRow) {
  // One live row at a time: the sum is that row's gradient.
  RowList rows = rows_;
  for (const int64_t row : {0, 5, 4096, 8000}) {
    std::fill(rows.labels.begin(), rows.labels.end(), kUnlabelled);
    rows.labels[static_cast<size_t>(row)] = 1;
    const PreparedRows prepared(graph_, transform_, rows, false, Continue);
    const auto engine = MakeFullBatchEngine(prepared, shape_, 1, Continue);
    std::vector<double> sum(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
    EXPECT_TRUE(engine->Sum(weights_, AllRows(kNodes), 1e-4, sum).ok());
    EXPECT_LE(Norm(sum), 1e-4);
    EXPECT_GT(Norm(sum), 0.9999 * 1e-4) << "what rounding may add is taken off";
  }
}

// Making an engine and one sum, by each of them, on more and more rows.
TEST(EngineQuestions, EnginesAreCancelledWheneverTheyAskWhichIsOftenEnough) {
  FixedRandom random(36);
  const InputTransform transform(v1::SQRT_UNIT, {});
  const WeightShape shape{65, 0, 4};
  const std::vector<float> weights = RandomWeights(shape, 1, random);
  for (const int64_t nodes : {2'000, 12'000}) {
    const Graph graph = RandomFeatures(nodes, 64, 4, 0.5, random);
    const auto entries = static_cast<int64_t>(graph.features.values.size());
    const RowList rows = IdentityRows(graph);
    const PreparedRows prepared(graph, transform, rows, false, Continue);
    const auto questions_of = [&](const auto& make) {
      return testing::CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
        std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
        return make(keep_going)->Sum(weights, AllRows(nodes), 0.3, sum);
      });
    };
    // Four passes over all entries when it is made, and one in a sum.
    EXPECT_GE(questions_of([&](const auto& ask) { return MakeFullBatchEngine(prepared, shape, 1, ask); }),
              5 * entries / (kEntriesPerQuestion + 100));
    EXPECT_GE(questions_of([&](const auto& ask) { return MakeFullBatchEngine(prepared, shape, 2, ask); }),
              5 * entries / (kEntriesPerQuestion + 100));
    EXPECT_GE(questions_of([&](const auto& ask) { return MakeCpuEngine(prepared, shape, 2, ask); }),
              4 * entries / (kEntriesPerQuestion + 400));
    EXPECT_GE(questions_of([&](const auto& ask) { return MakeTorchEngine(prepared, shape, "cpu", ask); }),
              entries / kEntriesPerQuestion + nodes / kSummationBlock);
  }
}

TEST_F(BlocksTest, AnEngineThatWasStoppedWhileItWasMadeSumsNothing) {
  const auto no = [] { return false; };
  std::vector<double> sum(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
  std::vector<std::unique_ptr<GradientEngine>> engines;
  engines.push_back(MakeCpuEngine(prepared_, shape_, 1, no));
  engines.push_back(MakeFullBatchEngine(prepared_, shape_, 2, no));
  engines.push_back(MakeTorchEngine(prepared_, shape_, "cpu", no));
  for (const auto& engine : engines) {
    EXPECT_TRUE(absl::IsCancelled(engine->Sum(weights_, AllRows(kNodes), 0.3, sum)));
  }
  EXPECT_THAT(sum, ::testing::Each(0.0));
}

TEST_F(BlocksTest, TheFullBatchEngineTakesIdentityRowsWithoutAHiddenLayer) {
  const auto is = [](const std::unique_ptr<GradientEngine>& made, const std::unique_ptr<GradientEngine>& like) {
    return typeid(*made) == typeid(*like);
  };
  const auto full = MakeFullBatchEngine(prepared_, shape_, 1, Continue);
  const auto rows = MakeCpuEngine(prepared_, shape_, 1, Continue);
  EXPECT_TRUE(is(MakeEngine(prepared_, shape_, true, "cpu", 1, Continue), full));
  EXPECT_TRUE(is(MakeEngine(prepared_, shape_, false, "cpu", 1, Continue), rows));
  RowList others = rows_;
  others.weights[3] = 0.5;
  const PreparedRows prepared(graph_, transform_, others, false, Continue);
  EXPECT_TRUE(is(MakeEngine(prepared, shape_, true, "cpu", 1, Continue), rows));
}

// Which engine sums must not follow from what is stored: neighbours would get different ones.
TEST_F(BlocksTest, TheEngineFollowsFromPublicSizes) {
  Graph wide = graph_;
  wide.sizes.feature_count = 300'000'000 / kNodes + 1;
  const PreparedRows prepared(wide, transform_, rows_, false, Continue);
  const WeightShape shape{wide.sizes.feature_count + 1, 0, 3};
  const auto made = MakeEngine(prepared, shape, true, "cpu", 1, Continue);
  const auto expected = MakeCpuEngine(prepared, shape, 1, Continue);
  EXPECT_TRUE(typeid(*made) == typeid(*expected));
  Graph nothing = graph_;
  nothing.features = SparseRows();
  nothing.features.offsets.assign(static_cast<size_t>(kNodes) + 1, 0);
  nothing.sizes = wide.sizes;
  const PreparedRows prepared_nothing(nothing, transform_, rows_, false, Continue);
  const auto still = MakeEngine(prepared_nothing, shape, true, "cpu", 1, Continue);
  EXPECT_TRUE(typeid(*still) == typeid(*expected)) << "however few entries are stored";
}

TEST(EngineChoice, TheFullBatchEngineTakesAsManyFeaturesAsItsEntriesName) {
  for (const int64_t features : {kMaxFullBatchColumns, kMaxFullBatchColumns + 1}) {
    FixedRandom random(24);
    Graph graph = RandomFeatures(10, 5, 3, 0.5, random);
    graph.sizes.feature_count = features;
    graph.features.columns.back() = static_cast<int32_t>(features) - 1;
    const RowList rows = IdentityRows(graph);
    const InputTransform transform(v1::SQRT_UNIT, {});
    const PreparedRows prepared(graph, transform, rows, false, Continue);
    const WeightShape shape{features + 1, 0, 3};
    const std::vector<float> weights = RandomWeights(shape, 1, random);
    const auto made = MakeEngine(prepared, shape, true, "cpu", 1, Continue);
    const auto by_rows = MakeCpuEngine(prepared, shape, 1, Continue);
    EXPECT_EQ(typeid(*made) == typeid(*by_rows), features > kMaxFullBatchColumns);
    std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
    std::vector<double> expected = sum;
    EXPECT_TRUE(made->Sum(weights, AllRows(10), 0.3, sum).ok());
    EXPECT_TRUE(by_rows->Sum(weights, AllRows(10), 0.3, expected).ok());
    EXPECT_LE(Distance(sum, expected), 1e-5 * Norm(expected));
  }
}

TEST_F(BlocksTest, ABatchWithoutANodesRowsGivesTheSameBitsWithoutTheNode) {
  std::vector<int64_t> batch = AllRows(kNodes);
  batch.erase(batch.begin() + 5);
  const Graph without = testing::WithNull(graph_, 5);
  const RowList rows = IdentityRows(without);
  const PreparedRows prepared(without, transform_, rows, false, Continue);
  EXPECT_EQ(Sum(*MakeCpuEngine(prepared, shape_, 1, Continue), batch),
            Sum(*MakeCpuEngine(prepared_, shape_, 1, Continue), batch));
}

// Every row has a column of its own, so that one sum shows each row's part. What is left of the others' gradients when
// a node goes must not depend on it, not in the last bit: the price has no term for that. LibTorch's engine fails this:
// its products are of live rows alone, and BLAS rounds by shape.
TEST(EnginesOfPrivateJobs, GiveOtherRowsTheSameBitsWithoutANode) {
  constexpr int64_t kNodes = 17;
  constexpr int64_t kShared = 9;
  constexpr int64_t kClasses = 37;
  FixedRandom random(25);
  Graph graph = RandomFeatures(kNodes, kShared, kClasses, 1.0, random);
  graph.sizes.feature_count = kShared + kNodes;
  for (int64_t row = kNodes; row-- > 0;) {
    const auto behind = (row + 1) * kShared;
    graph.features.columns.insert(graph.features.columns.begin() + behind, static_cast<int32_t>(kShared + row));
    graph.features.values.insert(graph.features.values.begin() + behind, 0.7F);
    graph.features.offsets[static_cast<size_t>(row) + 1] += row + 1;
  }
  const InputTransform transform(v1::SQRT_UNIT, {});
  for (const int64_t hidden : {0, 13}) {
    const WeightShape shape{kShared + kNodes + 1, hidden, kClasses};
    const std::vector<float> weights = RandomWeights(shape, 1, random);
    for (const bool full_batch : {false, true}) {
      const auto sum_of = [&](const Graph& one) {
        const RowList rows = IdentityRows(one);
        const PreparedRows prepared(one, transform, rows, hidden > 0, Continue);
        std::vector<double> sum(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
        const auto engine = MakeEngine(prepared, shape, full_batch, "cpu", 2, Continue);
        EXPECT_TRUE(engine->Sum(weights, AllRows(kNodes), 0.3, sum).ok());
        return sum;
      };
      const std::vector<double> with = sum_of(graph);
      for (const int64_t removed : {int64_t{0}, int64_t{8}, kNodes - 1}) {
        const std::vector<double> without = sum_of(testing::WithNull(graph, removed));
        for (int64_t at = kShared * shape.width(); at < (kShared + kNodes) * shape.width(); ++at) {
          const bool own = at / shape.width() == kShared + removed;
          ASSERT_EQ(without[static_cast<size_t>(at)], own ? 0 : with[static_cast<size_t>(at)])
              << "row " << at / shape.width() - kShared << " without " << removed << ", hidden " << hidden;
        }
      }
    }
  }
}

TEST_F(BlocksTest, TheSumIsThatOfItsBlocks) {
  const std::vector<int64_t> all = AllRows(kNodes);
  std::vector<double> expected;
  const auto engine = MakeCpuEngine(prepared_, shape_, 1, Continue);
  for (int64_t first = 0; first < kNodes; first += kSummationBlock) {
    const std::vector<double> block = Sum(
        *engine, std::vector<int64_t>(all.begin() + first, all.begin() + std::min(first + kSummationBlock, kNodes)));
    expected.resize(block.size(), 0.0);
    std::transform(expected.begin(), expected.end(), block.begin(), expected.begin(), std::plus<>());
  }
  EXPECT_EQ(Sum(*engine, all), expected) << "to the bit, since SummationError counts on it";
}

TEST_F(BlocksTest, AnEmptyBatchSumsToNothing) {
  const std::vector<double> zero(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
  EXPECT_EQ(Sum(*MakeCpuEngine(prepared_, shape_, 1, Continue), {}), zero);
  EXPECT_EQ(Sum(*MakeTorchEngine(prepared_, shape_, "cpu", Continue), {}), zero);
}

TEST_F(BlocksTest, StopsInsideAStepWhenToldTo) {
  int asked = 0;
  const auto stop = [&asked] { return ++asked < 3; };
  std::vector<double> sum(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
  EXPECT_TRUE(absl::IsCancelled(MakeCpuEngine(prepared_, shape_, 1, stop)->Sum(weights_, AllRows(kNodes), 0.3, sum)));
  EXPECT_EQ(asked, 3) << "it does not go on after the answer";
  asked = 2;
  EXPECT_TRUE(
      absl::IsCancelled(MakeTorchEngine(prepared_, shape_, "cpu", stop)->Sum(weights_, AllRows(kNodes), 0.3, sum)));
}

}  // namespace
}  // namespace dpar
