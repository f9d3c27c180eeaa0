// Both engines against per-row autograd on dense inputs, written from the definitions of input_rows.h and engine.h.
#include "core/train/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

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
#include "core/train/testing/random_rows.h"

namespace dpar {
namespace {

using ::dpar::testing::AllRows;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::RandomFeatures;
using ::dpar::testing::RandomRows;
using ::dpar::testing::RandomWeights;

bool Continue() { return true; }

// z of a slot, dense, in double.
at::Tensor DenseInput(const Graph& graph, int32_t slot, v1::Transform transform, const std::vector<float>& center) {
  const auto d = static_cast<size_t>(graph.sizes.feature_count);
  std::vector<double> x(d, 0.0);
  const GraphView view = graph;
  for (size_t i = 0; i < view.features.row_columns(slot).size(); ++i) {
    const auto value = static_cast<double>(view.features.row_values(slot)[i]);
    const bool root = transform == v1::SQRT_UNIT;
    x[static_cast<size_t>(view.features.row_columns(slot)[i])] = root ? std::sqrt(std::fmax(value, 0)) : value;
  }
  at::Tensor z = torch::tensor(x, torch::kDouble);
  if (transform != v1::RAW) {
    const double norm = z.norm().item<double>();
    z = norm > 0 ? z / norm : z;
    if (!center.empty()) {
      z = z - torch::tensor(std::vector<double>(center.begin(), center.end()), torch::kDouble);
      const double distance = z.norm().item<double>();
      z = distance > 0 ? z / distance : z;
    }
    z = z * std::sqrt(0.99);
  }
  return torch::cat({z, torch::tensor({0.1}, torch::kDouble)});
}

struct Reference {
  std::vector<double> sum;
  std::vector<double> norms;
};

// One backward pass for each row.
Reference PerRowAutograd(const Graph& graph, const RowList& rows, v1::Transform transform,
                         const std::vector<float>& center, const WeightShape& shape, const std::vector<float>& weights,
                         double clip) {
  const std::vector<double> in_double(weights.begin(), weights.begin() + shape.count());
  const at::Tensor all = torch::tensor(in_double, torch::kDouble).set_requires_grad(true);
  at::Tensor sum = torch::zeros({shape.count()}, torch::kDouble);
  Reference reference;
  for (int64_t row = 0; row < rows.count(); ++row) {
    const int32_t label = rows.labels[static_cast<size_t>(row)];
    if (label == kUnlabelled) {
      reference.norms.push_back(0);
      continue;
    }
    const at::Tensor first = all.narrow(0, 0, shape.first_layer()).reshape({shape.inputs, shape.width()});
    at::Tensor hidden = torch::zeros({shape.width()}, torch::kDouble);
    for (auto at = static_cast<size_t>(rows.offsets[static_cast<size_t>(row)]);
         at < static_cast<size_t>(rows.offsets[static_cast<size_t>(row) + 1]); ++at) {
      const at::Tensor output = torch::matmul(DenseInput(graph, rows.slots[at], transform, center), first);
      hidden = hidden + rows.weights[at] * (shape.hidden > 0 ? torch::relu(output) : output);
    }
    const at::Tensor second = all.narrow(0, shape.first_layer(), shape.hidden * shape.classes);
    const at::Tensor logits =
        shape.hidden > 0 ? torch::matmul(hidden, second.reshape({shape.hidden, shape.classes})) : hidden;
    const at::Tensor loss = -torch::log_softmax(logits, 0)[label];
    const at::Tensor gradient = torch::autograd::grad({loss}, {all})[0];
    const double norm = gradient.norm().item<double>();
    reference.norms.push_back(norm);
    sum += gradient * (norm > clip ? clip / norm : 1);
  }
  reference.sum.assign(sum.data_ptr<double>(), sum.data_ptr<double>() + sum.numel());
  return reference;
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(square);
}

double Norm(const std::vector<double>& a) { return Distance(a, std::vector<double>(a.size(), 0.0)); }

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
        EXPECT_NEAR(norm, std::min(own, clip), tolerance * std::min(own, clip)) << "row " << row << ", clip " << clip;
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
