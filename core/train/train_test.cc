#include "core/train/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/graph/generate.h"
#include "core/graph/testing/questions.h"
#include "core/infer/predict.h"
#include "core/pace.h"
#include "core/plan/method.h"
#include "core/plan/plan.h"
#include "core/plan/plan_event.h"
#include "core/plan/structure_work.h"
#include "core/random/secure_random.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/engine.h"
#include "core/train/rows.h"
#include "core/train/structure.h"
#include "core/train/testing/random_rows.h"

namespace dpar {
namespace {

using ::dpar::testing::AllRows;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::WithNull;

Graph SmallGraph(int64_t nodes = 40) {
  FixedRandom random(11);
  GeneratorOptions options;
  options.nodes = nodes;
  options.classes = 3;
  options.features = 30;
  options.features_per_node = 6;
  options.average_degree = 4;
  return *GenerateGraph(options, random);
}

TrainingCallbacks Silent() {
  return {[] { return true; }, [](TrainingStage, int64_t, int64_t) {}};
}

v1::TrainingSpec Spec(double epsilon, v1::Method method = v1::AUTO) {
  v1::TrainingSpec spec;
  spec.set_epsilon(epsilon);
  spec.set_delta(1e-5);
  spec.set_method(method);
  return spec;
}

v1::Plan MustPlan(const v1::TrainingSpec& spec, const Graph& graph) {
  const auto plan = MakePlan(spec, graph.sizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(v1::Plan());
}

TrainedModel MustTrain(const v1::Plan& plan, const Graph& graph, RandomSource& random) {
  auto trained = Train(plan, graph, {}, random, Silent());
  EXPECT_TRUE(trained.ok()) << trained.status();
  return trained.ok() ? *std::move(trained) : TrainedModel();
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(square);
}

// What removing one node can change, with everything that was released before (DP-APPR rows, the mean, the weights)
// held fixed, as composition has it.
class SensitivityTest : public ::testing::TestWithParam<std::pair<v1::Method, int64_t>> {
 protected:
  SensitivityTest() {
    v1::TrainingSpec spec = Spec(50, GetParam().first);
    v1::TrainingOptions& options = *spec.mutable_options();
    options.set_center(true);
    // Small against all gradients, so that every one is clipped and every change shows in full.
    options.set_gradient_clip(1e-4);
    options.set_hidden_size(GetParam().second);
    if (FindMethod(GetParam().first)->structure.has_value()) {
      options.set_appr_nodes(30);
      options.set_top_k(3);
      options.set_max_occurrence(4);
    }
    plan_ = MustPlan(spec, graph_);
    center_.assign(30, 0.03F);
    shape_ = {31, plan_.hidden_size(), 3};
    weights_ = testing::RandomWeights(shape_, 1, random_);
    if (plan_.has_structure()) {
      const auto drawn = DrawStructure(plan_, graph_, 1, random_, [] { return true; });
      EXPECT_TRUE(drawn.ok()) << drawn.status();
      appr_ = *drawn;
    }
  }

  [[nodiscard]] std::vector<double> Sum(const Graph& graph, bool null_rule) const {
    RowList rows = plan_.has_structure() ? StructureRows(graph, appr_, plan_.structure().rows()) : IdentityRows(graph);
    if (null_rule) {
      ApplyNullRule(graph, rows);
    }
    const InputTransform transform(plan_.transform(), center_);
    const PreparedRows prepared(graph, transform, rows, plan_.hidden_size() > 0, [] { return true; });
    std::vector<double> sum(static_cast<size_t>(shape_.count()) + kWeightPadding, 0.0);
    const auto engine = MakeCpuEngine(prepared, shape_, 1, [] { return true; });
    EXPECT_TRUE(engine->Sum(weights_, AllRows(rows.count()), plan_.gradient_clip(), sum).ok());
    return sum;
  }

  // The largest change, in units of C, over all nodes.
  [[nodiscard]] double LargestChange(bool null_rule) const {
    const std::vector<double> whole = Sum(graph_, null_rule);
    double largest = 0;
    for (int64_t v = 0; v < graph_.sizes.node_count; ++v) {
      largest = std::max(largest, Distance(whole, Sum(WithNull(graph_, v), null_rule)) / plan_.gradient_clip());
    }
    return largest;
  }

  FixedRandom random_{12};
  const Graph graph_ = SmallGraph();
  v1::Plan plan_;
  std::vector<float> center_;
  WeightShape shape_;
  std::vector<float> weights_;
  ApprRows appr_;
};

TEST_P(SensitivityTest, RemovingAnyOneNodeChangesTheClippedSumByAtMostTheRowsItIsIn) {
  const auto r = static_cast<double>(plan_.rows_per_node());
  const double largest = LargestChange(/*null_rule=*/true);
  EXPECT_LE(largest, r * (1 + 1e-9));
  EXPECT_GT(largest, 0.999) << "clipping is exercised, not idle";
}

INSTANTIATE_TEST_SUITE_P(Methods, SensitivityTest,
                         ::testing::Values(std::pair(v1::FEATURES, 0), std::pair(v1::FEATURES, 8),
                                           std::pair(v1::DPAR_EM0, 0), std::pair(v1::DPAR_EM0, 8),
                                           std::pair(v1::DPAR_EM1, 0), std::pair(v1::DPAR_EM1, 8),
                                           std::pair(v1::DPAR_GM, 0), std::pair(v1::DPAR_GM, 8)));

// The worst case that the null rule excludes: node 0 carries most of the weight of rows whose rest is node 1. With it
// their gradients point along its features, without it, were they left in, along those of node 1.
TEST(NullRule, WithoutItRemovingANodeChangesMoreThanItsRows) {
  Graph graph;
  graph.sizes = {6, 2, 2};
  graph.edge_offsets.assign(7, 0);
  graph.features.offsets = {0, 1, 2, 3, 4, 5, 6};
  graph.features.columns = {0, 1, 0, 0, 0, 0};
  graph.features.values = {1, 1, 1, 1, 1, 1};
  graph.labels.assign(6, 0);
  ApprRows appr;
  appr.node_count = 6;
  appr.seeds = {2, 3, 4};
  appr.offsets = {0, 2, 4, 6};
  appr.columns = {0, 1, 0, 1, 0, 1};
  appr.values = {1, 0.1, 1, 0.1, 1, 0.1};
  constexpr double kClip = 1e-4;
  constexpr double kRows = 4;  // its own and three that list it
  const WeightShape shape{3, 0, 2};
  const std::vector<float> weights(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0F);
  const InputTransform transform(v1::SQRT_UNIT, {});
  const auto change = [&](bool null_rule) {
    std::vector<std::vector<double>> sums;
    for (const Graph& one : {graph, WithNull(graph, 0)}) {
      RowList rows = StructureRows(one, appr, v1::APPR_AND_IDENTITY);
      if (null_rule) {
        ApplyNullRule(one, rows);
      }
      const PreparedRows prepared(one, transform, rows, false, [] { return true; });
      std::vector<double>& sum = sums.emplace_back(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0);
      EXPECT_TRUE(MakeCpuEngine(prepared, shape, 1, [] { return true; })->Sum(weights, AllRows(6), kClip, sum).ok());
    }
    return Distance(sums[0], sums[1]) / kClip;
  };
  EXPECT_LE(change(/*null_rule=*/true), kRows);
  EXPECT_GT(change(/*null_rule=*/true), 0.99 * kRows);
  EXPECT_GT(change(/*null_rule=*/false), 1.1 * kRows);
}

// GAP and SAGE, which read edges under a promise, have tests of their own (aggregation_test.cc).
std::vector<MethodTraits> MethodsWithoutAPromise() {
  std::vector<MethodTraits> methods;
  std::copy_if(Methods().begin(), Methods().end(), std::back_inserter(methods),
               [](const MethodTraits& method) { return !method.reads_edges; });
  return methods;
}

// LibTorch's sums do not keep other rows' bits when a node goes (engine_test.cc), so a device must not get a private
// job.
TEST(Train, APrivateJobIsRefusedOnAnyDeviceButTheCpu) {
  const Graph graph = SmallGraph();
  FixedRandom random(12);
  for (const char* device : {"cuda:0", "cuda", "mps"}) {
    const absl::Status status = Train(MustPlan(Spec(1), graph), graph, {.device = device}, random, Silent()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "device");
    EXPECT_THAT(status.message(), ::testing::HasSubstr("a private job runs on the cpu only, not on "));
  }
}

TEST(Train, EdgesAreReadByTheStructureMethodsOnly) {
  const Graph graph = SmallGraph();
  Graph without = graph;
  without.neighbours.clear();
  without.edge_offsets.assign(without.edge_offsets.size(), 0);
  for (const MethodTraits& method : MethodsWithoutAPromise()) {
    // So much epsilon that the rows are about exact.
    v1::TrainingSpec spec = Spec(90, method.method);
    if (method.structure.has_value()) {
      spec.mutable_options()->set_structure_share(0.9);
      spec.mutable_options()->set_appr_nodes(40);
    }
    const v1::Plan plan = MustPlan(spec, graph);
    FixedRandom one(12);
    FixedRandom other(12);
    const bool same = MustTrain(plan, graph, one).model.weights == MustTrain(plan, without, other).model.weights;
    EXPECT_EQ(same, !method.structure.has_value()) << method.name;
  }
}

TEST(Train, TheNoiseThatReachesTheModelHasThePlannedVariance) {
  Graph graph = SmallGraph(50);
  graph.sizes.feature_count = 20'000;
  graph.labels.assign(graph.labels.size(), kUnlabelled);  // no row contributes: the model is its noise
  v1::TrainingSpec spec = Spec(1);
  spec.mutable_options()->set_steps(1);
  spec.mutable_options()->set_momentum(0);
  spec.mutable_options()->set_learning_rate(50);
  spec.mutable_options()->set_center(false);
  const v1::Plan plan = MustPlan(spec, graph);
  FixedRandom random(12);
  const Model model = MustTrain(plan, graph, random).model;
  double square = 0;
  for (const float value : model.weights) {
    square += static_cast<double>(value) * static_cast<double>(value);
  }
  const double stddev = plan.noise_multiplier() * plan.gradient_clip();
  const auto count = static_cast<double>(model.weights.size());
  // Five standard errors of a chi-square with 60,003 degrees: false-alarm rate 6e-7 had the seed not been fixed.
  EXPECT_NEAR(square / (stddev * stddev), count, 5 * std::sqrt(2 * count));
}

TEST(Train, NoiseIsFreshInEveryRun) {
  const Graph graph = SmallGraph();
  const v1::Plan plan = MustPlan(Spec(1), graph);
  SecureRandom random;
  EXPECT_NE(MustTrain(plan, graph, random).model.weights, MustTrain(plan, graph, random).model.weights);
}

TEST(Train, LearnsWhenThePriceIsHigh) {
  FixedRandom random(13);
  GeneratorOptions generator;
  generator.nodes = 2000;
  const Graph graph = *GenerateGraph(generator, random);
  for (const MethodTraits& method : MethodsWithoutAPromise()) {
    for (const int64_t hidden : {0, 16}) {
      v1::TrainingSpec spec = Spec(16, method.method);
      spec.mutable_options()->set_hidden_size(hidden);
      if (hidden > 0) {
        spec.mutable_options()->set_learning_rate(3);
      }
      const Model model = MustTrain(MustPlan(spec, graph), graph, random).model;
      const auto predictions = Predict(model, graph, {.propagation = Propagation::kNone});
      ASSERT_TRUE(predictions.ok()) << predictions.status();
      EXPECT_GT(*Accuracy(*predictions, graph.labels), 0.85) << method.name << ", hidden " << hidden;
    }
  }
}

TEST(Train, LearnsWithoutNoiseByEveryMethod) {
  FixedRandom random(14);
  GeneratorOptions generator;
  generator.nodes = 1000;
  const Graph graph = *GenerateGraph(generator, random);
  for (const MethodTraits& method : Methods()) {
    v1::TrainingSpec spec;
    spec.set_method(method.method);
    spec.set_non_private(true);
    const Model model = MustTrain(MustPlan(spec, graph), graph, random).model;
    const auto predictions = Predict(model, graph, {.propagation = Propagation::kNone});
    EXPECT_GT(*Accuracy(*predictions, graph.labels), 0.9) << method.name;
  }
}

TEST(Train, SamplesNodesAndBatchesAndStillReturnsAModel) {
  const Graph graph = SmallGraph(400);
  v1::TrainingSpec spec = Spec(4, v1::DPAR_GM);
  spec.mutable_options()->set_node_sampling_rate(0.5);
  spec.mutable_options()->set_batch_size(20);
  spec.mutable_options()->set_steps(20);
  spec.mutable_options()->set_optimizer(v1::ADAM);
  spec.mutable_options()->set_hidden_size(8);
  spec.mutable_options()->set_rows(v1::APPR_ONLY);
  spec.mutable_options()->set_appr_nodes(100);
  FixedRandom random(15);
  const Model model = MustTrain(MustPlan(spec, graph), graph, random).model;
  EXPECT_EQ(model.weights.size(), 31 * 8);
  EXPECT_EQ(model.output_weights.size(), 8 * 3);
  EXPECT_TRUE(ValidateModel(model).ok());
}

TEST(Train, EvaluatesOnSlotsThatTrainingDidNotSee) {
  FixedRandom random(16);
  GeneratorOptions generator;
  generator.nodes = 2000;
  const Graph graph = *GenerateGraph(generator, random);
  v1::TrainingSpec spec = Spec(20);
  spec.mutable_evaluation()->set_held_out_share(0.2);
  spec.mutable_evaluation()->set_budget_share(0.2);
  const v1::Plan plan = MustPlan(spec, graph);
  const TrainedModel trained = MustTrain(plan, graph, random);
  ASSERT_TRUE(trained.evaluation.has_value());
  EXPECT_EQ(trained.evaluation->held_out_slots(), 400);
  EXPECT_GT(trained.evaluation->accuracy(), 0.85);
  EXPECT_LT(trained.evaluation->low(), trained.evaluation->accuracy());
  EXPECT_LE(trained.evaluation->accuracy(), trained.evaluation->high());
  EXPECT_GT(trained.evaluation->high() - trained.evaluation->low(), 0.01);
  EXPECT_FALSE(MustTrain(MustPlan(Spec(20), graph), graph, random).evaluation.has_value());
}

TEST(Train, FeaturesThatAreNotFiniteCountAsZero) {
  Graph graph = SmallGraph();
  graph.features.values[0] = std::numeric_limits<float>::quiet_NaN();
  graph.features.values[7] = std::numeric_limits<float>::infinity();
  Graph zero = graph;
  zero.features.values[0] = 0;
  zero.features.values[7] = 0;
  const v1::Plan plan = MustPlan(Spec(1), graph);
  FixedRandom one(17);
  FixedRandom other(17);
  EXPECT_EQ(MustTrain(plan, graph, one).model.weights, MustTrain(plan, zero, other).model.weights);
}

TEST(Train, AnAbsurdLearningRateStillGivesAModelThatCanBeWritten) {
  const Graph graph = SmallGraph();
  for (const v1::Optimizer optimizer : {v1::SGD, v1::ADAM}) {
    for (const int64_t hidden : {0, 4}) {
      v1::TrainingSpec spec = Spec(0.001);
      spec.mutable_options()->set_learning_rate(1e9);
      spec.mutable_options()->set_optimizer(optimizer);
      spec.mutable_options()->set_hidden_size(hidden);
      spec.mutable_options()->set_steps(200);
      FixedRandom random(18);
      EXPECT_TRUE(ValidateModel(MustTrain(MustPlan(spec, graph), graph, random).model).ok());
    }
  }
}

TEST(Train, TellsStagesAndStepsAndNothingElse) {
  const Graph graph = SmallGraph(200);
  v1::TrainingSpec spec = Spec(4, v1::DPAR_EM0);
  spec.mutable_options()->set_steps(3);
  spec.mutable_evaluation()->set_held_out_share(0.2);
  spec.mutable_evaluation()->set_budget_share(0.1);
  std::vector<std::tuple<TrainingStage, int64_t, int64_t>> told;
  TrainingCallbacks callbacks = Silent();
  callbacks.on_progress = [&](TrainingStage stage, int64_t completed, int64_t total) {
    told.emplace_back(stage, completed, total);
  };
  FixedRandom random(19);
  ASSERT_TRUE(Train(MustPlan(spec, graph), graph, {}, random, callbacks).ok());
  using Told = std::tuple<TrainingStage, int64_t, int64_t>;
  EXPECT_THAT(told,
              ::testing::ElementsAre(Told(TrainingStage::kStructure, 0, 0), Told(TrainingStage::kTraining, 0, 3),
                                     Told(TrainingStage::kTraining, 1, 3), Told(TrainingStage::kTraining, 2, 3),
                                     Told(TrainingStage::kTraining, 3, 3), Told(TrainingStage::kEvaluating, 0, 0)));
}

TEST(Train, DpApprEndsAtAPublicAgeAndNoOtherStageWaits) {
  const Graph graph = SmallGraph(200);
  for (const v1::Method method : {v1::FEATURES, v1::DPAR_EM0, v1::DPAR_GM}) {
    v1::TrainingSpec spec = Spec(4, method);
    spec.mutable_options()->set_steps(1);
    const v1::Plan plan = MustPlan(spec, graph);
    std::vector<double> ages;
    TrainingCallbacks callbacks = Silent();
    callbacks.await_stage_age = [&](double seconds) { ages.push_back(seconds); };
    FixedRandom random(20);
    ASSERT_TRUE(Train(plan, graph, {.threads = 2}, random, callbacks).ok());
    if (method == v1::FEATURES) {
      EXPECT_THAT(ages, ::testing::IsEmpty());
    } else {
      EXPECT_THAT(ages, ::testing::ElementsAre(WorkOfStructure(plan, 2).seconds));
    }
  }
}

// Every stage that a plan can have: node sampling, DP-APPR, mean, steps, evaluation, and the copies between them.
TEST(Train, IsCancelledWheneverItAsks) {
  const Graph graph = SmallGraph(300);
  for (const auto& [method, hidden] : {std::pair(v1::FEATURES, 0), std::pair(v1::DPAR_EM1, 4)}) {
    v1::TrainingSpec spec = Spec(4, method);
    spec.mutable_options()->set_center(true);
    spec.mutable_options()->set_steps(2);
    spec.mutable_options()->set_hidden_size(hidden);
    spec.mutable_options()->set_node_sampling_rate(0.7);
    spec.mutable_evaluation()->set_held_out_share(0.2);
    spec.mutable_evaluation()->set_budget_share(0.1);
    const v1::Plan plan = MustPlan(spec, graph);
    const int64_t questions = testing::CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
      FixedRandom random(20);
      TrainingCallbacks callbacks = Silent();
      callbacks.keep_going = keep_going;
      return Train(plan, graph, {}, random, callbacks).status();
    });
    // Three copies, the mean, the rows, at least three in each of two steps, and the evaluation; a row of DP-APPR each.
    EXPECT_GE(questions, 3 + 1 + 1 + 2 * 3 + 1 + (method == v1::DPAR_EM1 ? 70 : 0));
  }
}

// How many questions more a larger graph takes, against how many entries more it has.
TEST(Train, AsksMoreOftenTheMoreThereIsToDo) {
  const auto questions_of = [](int64_t nodes) {
    const Graph graph = SmallGraph(nodes);
    v1::TrainingSpec spec = Spec(4);
    spec.mutable_options()->set_center(true);
    spec.mutable_options()->set_steps(1);
    spec.mutable_options()->set_node_sampling_rate(0.9);
    spec.mutable_evaluation()->set_held_out_share(0.5);
    spec.mutable_evaluation()->set_budget_share(0.1);
    std::map<std::string, int64_t> by_stage;
    std::string stage = "before";
    std::mutex mutex;
    TrainingCallbacks callbacks;
    callbacks.keep_going = [&] {
      const std::lock_guard<std::mutex> lock(mutex);
      return ++by_stage[stage] > 0;
    };
    callbacks.on_progress = [&](TrainingStage begun, int64_t completed, int64_t /*total*/) {
      stage = begun == TrainingStage::kEvaluating ? "evaluating" : (completed == 0 ? "training" : "after");
    };
    FixedRandom random(23);
    EXPECT_TRUE(Train(MustPlan(spec, graph), graph, {}, random, callbacks).ok());
    return by_stage;
  };
  std::map<std::string, int64_t> few = questions_of(20'000);
  std::map<std::string, int64_t> many = questions_of(120'000);
  // Each stage goes over at least 10 entries of half of the nodes.
  constexpr int64_t kMore = 100'000 / 2 * 10 / (kEntriesPerQuestion + 100);
  for (const char* stage : {"before", "training", "evaluating"}) {
    EXPECT_GE(many[stage] - few[stage], kMore) << stage;
  }
  EXPECT_GE(many["before"], 4 * few["before"]);
}

TEST(Train, RefusesAPlanForAnotherGraph) {
  const Graph graph = SmallGraph();
  FixedRandom random(15);
  const v1::Plan plan = MustPlan(Spec(1), SmallGraph(41));
  EXPECT_EQ(Train(plan, graph, {}, random, Silent()).status().code(), absl::StatusCode::kInvalidArgument);
  v1::Plan no_event = MustPlan(Spec(1), graph);
  no_event.clear_event();
  EXPECT_EQ(Train(no_event, graph, {}, random, Silent()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dpar
