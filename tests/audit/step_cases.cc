// The private mean, the class shares, the charged evaluation and noisy steps: mechanisms that are called without
// DP-APPR.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/infer/edge_inputs.h"
#include "core/infer/input_rows.h"
#include "core/infer/model.h"
#include "core/plan/plan_event.h"
#include "core/privacy/gaussian.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/class_shares.h"
#include "core/train/descent.h"
#include "core/train/engine.h"
#include "core/train/evaluate.h"
#include "core/train/mean.h"
#include "core/train/rows.h"
#include "core/train/structure.h"
#include "tests/audit/case.h"
#include "tests/audit/inputs.h"

namespace dpar::audit {
namespace {

using ::dpar::testing::FixedRandom;

constexpr int64_t kCheapRuns = 60'000;
constexpr int64_t kFewRuns = 30'000;  // of mechanisms that take longer, or where little is enough
constexpr float kExtreme = 1e30F;
constexpr double kSmallClip = 1e-3;  // below the norm of every gradient, so that each counts in full

// As many ordinary nodes as make the sum long against the noise, which the shrinking of the mean would hide otherwise.
Case MeanCase(const std::string& input, const Node& node, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  std::vector<Node> nodes(64, Node{0, 0, 1});
  nodes[0] = node;
  const auto graphs = std::make_shared<Neighbours>(Remove(GraphOf(nodes, edges, 2, 2), 0));
  // The mean has a fifth of mu.
  const double mu = 5 * Must(GaussianMu(1, kDelta));
  v1::TrainingSpec spec = SpecOf(v1::FEATURES, Must(GaussianEpsilon(mu, kDelta)));
  spec.mutable_options()->set_center(true);
  const auto plan = std::make_shared<v1::Plan>(PlanFor(spec, graphs->with.sizes));
  Case one = {"private mean", input, ClaimOf(*plan, kMeanStage), true, kCheapRuns, 2, {}};
  one.make = [graphs, plan](bool with, double fault) {
    return [graphs, drawn = WithNoise(*plan, fault), &graph = graphs->of(with)](RandomSource& random,
                                                                                std::span<double> out) {
      const std::vector<float> mean = Must(PrivateMean(drawn, graph, random, Always));
      std::copy(mean.begin(), mean.end(), out.begin());
    };
  };
  return one;
}

// Notes the weights that a step starts from, which the accountant counts as released.
class WatchedEngine final : public GradientEngine {
 public:
  explicit WatchedEngine(GradientEngine& engine) : engine_(engine) {}

  absl::Status Sum(std::span<const float> weights, std::span<const int64_t> batch, double clip,
                   std::span<double> sum) override {
    if (at_step_start_) {
      seen_.emplace_back(weights.begin(), weights.end() - static_cast<std::ptrdiff_t>(kWeightPadding));
      at_step_start_ = false;
    }
    return engine_.Sum(weights, batch, clip, sum);
  }
  void EndStep() { at_step_start_ = true; }
  [[nodiscard]] const std::vector<std::vector<float>>& seen() const { return seen_; }

 private:
  GradientEngine& engine_;
  bool at_step_start_ = true;
  std::vector<std::vector<float>> seen_;
};

// The same initial weights in every run, which are drawn independently of the data, and fresh streams of noise.
class FixedStart final : public RandomSource {
 public:
  explicit FixedStart(RandomSource& noise) : noise_(noise) {}
  void Fill(std::span<uint8_t> bytes) override { start_.Fill(bytes); }
  std::unique_ptr<RandomSource> Split() override { return noise_.Split(); }

 private:
  FixedRandom start_{3};
  RandomSource& noise_;
};

// Rows of a graph and an engine for them: what the trainer makes before it descends.
class Descent {
 public:
  Descent(v1::Plan plan, const Graph& graph, RowList rows)
      : plan_(std::move(plan)),
        rows_(std::move(rows)),
        transform_(plan_.transform(), {}),
        prepared_(graph, transform_, rows_, plan_.hidden_size() > 0, Always),
        shape_{graph.sizes.feature_count + 1, plan_.hidden_size(), graph.sizes.class_count},
        engine_(MakeEngine(prepared_, shape_, plan_.sampling_rate() == 1, "cpu", 1, Always)) {}

  // How far each step moved the weights.
  void Run(RandomSource& random, std::span<double> out) {
    FixedStart start(random);
    RandomSource& source = plan_.hidden_size() > 0 ? static_cast<RandomSource&>(start) : random;
    WatchedEngine watched(*engine_);
    const std::vector<float> last = Must(Descend(plan_, shape_, rows_.count(), watched, 1, source, Always,
                                                 [&watched](int64_t /*steps*/) { watched.EndStep(); }));
    std::vector<std::vector<float>> seen = watched.seen();
    seen.push_back(last);
    // A fault may skip the engine for an empty batch. Such a step is not seen, and moved nothing.
    std::fill(out.begin(), out.end(), 0.0);
    for (size_t step = 0; step + 1 < seen.size(); ++step) {
      for (size_t i = 0; i < last.size(); ++i) {
        out[step * last.size() + i] = static_cast<double>(seen[step + 1][i]) - static_cast<double>(seen[step][i]);
      }
    }
  }

 private:
  const v1::Plan plan_;
  const RowList rows_;
  const InputTransform transform_;
  const PreparedRows prepared_;
  const WeightShape shape_;
  const std::unique_ptr<GradientEngine> engine_;
};

Case DescentCase(const std::string& mechanism, const std::string& input, const Neighbours& neighbours,
                 const v1::Plan& made_plan, const std::function<RowList(const Graph&)>& rows_of) {
  const auto graphs = std::make_shared<Neighbours>(neighbours);
  const auto plan = std::make_shared<v1::Plan>(made_plan);
  Case one = {mechanism, input, ClaimOf(*plan, kTrainingStage), true, kCheapRuns, 0, {}};
  one.width = static_cast<size_t>(plan->steps() * ParameterCount(*plan, graphs->with.sizes));
  one.make = [graphs, plan, rows_of](bool with, double fault) {
    const auto descent =
        std::make_shared<Descent>(WithNoise(*plan, fault), graphs->of(with), rows_of(graphs->of(with)));
    return [graphs, descent](RandomSource& random, std::span<double> out) { descent->Run(random, out); };
  };
  return one;
}

RowList LiveRows(const Graph& graph) {
  RowList rows = IdentityRows(graph);
  ApplyNullRule(graph, rows);
  return rows;
}

v1::TrainingSpec StepSpec() {
  v1::TrainingSpec spec = SpecOf(v1::FEATURES, 1);
  spec.mutable_options()->set_gradient_clip(kSmallClip);
  spec.mutable_options()->set_learning_rate(1 / kSmallClip);
  return spec;
}

Case StepCase(const std::string& mechanism, const std::string& input, const std::vector<Node>& nodes,
              const v1::TrainingSpec& spec) {
  const Neighbours neighbours = Remove(GraphOf(nodes, StarEdges(static_cast<int32_t>(nodes.size()) - 1), 2, 2), 0);
  return DescentCase(mechanism, input, neighbours, PlanFor(spec, neighbours.with.sizes), LiveRows);
}

// A node with features of its own among others.
std::vector<Node> LoneNode(size_t others) {
  std::vector<Node> nodes(others + 1, Node{1, 1, 1});
  nodes[0] = {0, 0, 1};
  return nodes;
}

// A node whose gradient is against that of all others.
std::vector<Node> Opponent(size_t others) {
  std::vector<Node> nodes(others + 1, Node{1, 0, 1});
  nodes[0] = {0, 0, 1};
  return nodes;
}

// A star whose middle is in as many rows as it may be. Its features are against those of the leaves, but weigh more in
// the rows that list both.
Case ListedCase(const std::string& input, float leaf_value) {
  constexpr int32_t kLeaves = 8;
  std::vector<Node> nodes(kLeaves + 1, Node{0, 0, leaf_value});
  nodes[0].value = 1;
  const Graph graph = GraphOf(nodes, StarEdges(kLeaves), 1, 2);
  v1::TrainingSpec spec = StepSpec();
  spec.set_method(v1::DPAR_GM);
  spec.set_epsilon(2);
  v1::TrainingOptions& options = *spec.mutable_options();
  options.set_structure_share(0.5);
  options.set_transform(v1::UNIT);
  options.set_appr_nodes(kLeaves);
  options.set_alpha(0.02);
  options.set_top_k(2);
  options.set_row_clip(1);
  options.set_column_clip(100);
  options.set_max_occurrence(3);
  const v1::Plan plan = PlanFor(spec, graph.sizes);
  // The rows are released before the steps, so the steps must keep their promise whatever the rows are: here the exact
  // ones of the leaves, as far as the cap lets them through.
  v1::Plan clear = plan;
  clear.mutable_structure()->set_noise(1e-4);
  ApprRows appr;
  for (uint64_t stream = 0; appr.seeds.empty() || std::count(appr.seeds.begin(), appr.seeds.end(), 0) > 0; ++stream) {
    FixedRandom random(stream);
    appr = Must(DrawStructure(clear, graph, 1, random, Always));
  }
  return DescentCase("step on DP-APPR rows", input, Remove(graph, 0), plan, [appr](const Graph& one) {
    RowList rows = StructureRows(one, appr, v1::APPR_AND_IDENTITY);
    ApplyNullRule(one, rows);
    return rows;
  });
}

// SAGE's rows as features, for a step on them: what the trainer makes where no neighbour is left out.
Graph SageInputs(const Graph& graph) {
  Graph inputs = graph;
  inputs.features = Must(NeighbourMeanRows(graph.features, graph.sizes.feature_count, graph.edges(), v1::RAW, Always));
  inputs.sizes.feature_count *= 2;
  return inputs;
}

// A hub at the promise, and another node with the same leaves. The leaves' own features are small, and the mean of
// their neighbours' is -1e3 with the hub and 1e3 without it: their gradients turn round, the most that is charged.
Case SageCase(const std::string& mechanism, int64_t batch_size) {
  constexpr int32_t kLeaves = 6;
  std::vector<Node> nodes(kLeaves + 2, Node{0, 0, 1e-3F});
  nodes[0] = {0, 1, -3e3F};
  nodes[1] = {0, 1, 1e3F};
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t leaf = 2; leaf < kLeaves + 2; ++leaf) {
    edges.emplace_back(0, leaf);
    edges.emplace_back(1, leaf);
  }
  const Neighbours graphs = Remove(GraphOf(nodes, edges, 2, 2), 0);
  v1::TrainingSpec spec = SpecOf(v1::SAGE, 1);
  v1::TrainingOptions& options = *spec.mutable_options();
  options.set_transform(v1::RAW);
  options.set_hidden_size(0);
  options.set_neighbours(kLeaves);
  options.set_gradient_clip(kSmallClip);
  options.set_learning_rate(1 / kSmallClip);
  options.set_batch_size(batch_size);
  const v1::Plan plan = PlanFor(spec, graphs.with.sizes, kLeaves);
  Case one = DescentCase(mechanism, "flipped", {SageInputs(graphs.with), SageInputs(graphs.without)}, plan, LiveRows);
  one.width = static_cast<size_t>(ParameterCount(plan, graphs.with.sizes));
  return one;
}

// A model that predicts class 0 for the held-out half, of whose slots every other has that class.
Case EvaluationCase(const std::string& input, const Node& node) {
  constexpr size_t kSlots = 64;
  std::vector<Node> nodes(kSlots);
  for (size_t i = 0; i < kSlots; ++i) {
    nodes[i].label = static_cast<int32_t>(i % 2);
  }
  nodes[0] = node;
  const auto graphs = std::make_shared<Neighbours>(Remove(GraphOf(nodes, StarEdges(kSlots - 1), 1, 2), 0));
  v1::TrainingSpec spec = SpecOf(v1::FEATURES, 2);
  spec.mutable_evaluation()->set_held_out_share(0.5);
  spec.mutable_evaluation()->set_budget_share(0.5);
  const auto plan = std::make_shared<v1::Plan>(PlanFor(spec, {2 * kSlots, 1, 2}));
  const auto model = std::make_shared<Model>();
  model->feature_count = 1;
  model->class_count = 2;
  model->weights = {1, 0, 0, 0};
  Case one = {"charged evaluation", input, ClaimOf(*plan, kEvaluationStage), true, kFewRuns, 1, {}};
  one.make = [graphs, plan, model](bool with, double fault) {
    return [graphs, drawn = WithNoise(*plan, fault), model, &graph = graphs->of(with)](RandomSource& random,
                                                                                       std::span<double> out) {
      out[0] = Must(Evaluate(drawn, *model, graph, random, Always)).accuracy();
    };
  };
  return one;
}

// A model that is certain of every node: of class 0 for column 0, of class 1 for column 1.
Case SharesCase(const std::string& input, const Node& node) {
  constexpr size_t kSlots = 16;
  std::vector<Node> nodes(kSlots, Node{1, 1, 1});
  nodes[0] = node;
  const auto graphs = std::make_shared<Neighbours>(Remove(GraphOf(nodes, StarEdges(kSlots - 1), 2, 2), 0));
  // The class shares have a tenth of mu.
  const double mu = 10 * Must(GaussianMu(1, kDelta));
  v1::TrainingSpec spec = SpecOf(v1::FEATURES, Must(GaussianEpsilon(mu, kDelta)));
  spec.mutable_options()->set_shift(true);
  const auto plan = std::make_shared<v1::Plan>(PlanFor(spec, graphs->with.sizes));
  const auto model = std::make_shared<Model>();
  model->feature_count = 2;
  model->class_count = 2;
  model->weights = {1e3F, 0, 0, 1e3F, 0, 0};
  Case one = {"class shares", input, ClaimOf(*plan, kSharesStage), true, kFewRuns, 2, {}};
  one.make = [graphs, plan, model](bool with, double fault) {
    return [graphs, drawn = WithNoise(*plan, fault), model, &graph = graphs->of(with)](RandomSource& random,
                                                                                       std::span<double> out) {
      const std::vector<double> sums = Must(NoisyClassSums(drawn, *model, graph, 1, random, Always));
      std::copy(sums.begin(), sums.end(), out.begin());
    };
  };
  return one;
}

}  // namespace

std::vector<Case> SharesCases() { return {SharesCase("hub", {0, 0, 1}), SharesCase("outlier", {0, 1, kExtreme})}; }

std::vector<Case> MeanCases() {
  return {MeanCase("hub", {0, 0, 1}, StarEdges(63)), MeanCase("outlier", {0, 1, kExtreme}, {}),
          MeanCase("lone", {0, 1, 1}, {})};
}

// The person has other features and other neighbours in each version. Its two releases are drawn independently.
Case TwoVersionsCase(Charged charged) {
  const Case january = StepCase("one step", "lone", LoneNode(3), StepSpec());
  const Case february = StepCase("one step", "hub", std::vector<Node>(8), StepSpec());
  const double january_mu = Must(GaussianMu(january.claim, kDelta));
  const double february_mu = Must(GaussianMu(february.claim, kDelta));
  Case both = january;
  both.mechanism = "jobs on two versions";
  both.input = "lone, hub";
  both.claim = charged == Charged::kBoth ? Must(GaussianEpsilon(std::hypot(january_mu, february_mu), kDelta))
                                         : std::max(january.claim, february.claim);
  both.width = january.width + february.width;
  both.make = [january, february](bool with, double fault) {
    return [first = january.make(with, fault), second = february.make(with, fault), width = january.width](
               RandomSource& random, std::span<double> out) {
      first(random, out.first(width));
      second(random, out.subspan(width));
    };
  };
  return both;
}

std::vector<Case> StepCases() {
  std::vector<Case> cases;
  cases.push_back(StepCase("one step", "hub", std::vector<Node>(8), StepSpec()));
  cases.push_back(StepCase("one step", "lone", LoneNode(3), StepSpec()));
  v1::TrainingSpec raw = StepSpec();
  raw.mutable_options()->set_transform(v1::RAW);
  std::vector<Node> extreme = LoneNode(3);
  extreme[0].value = kExtreme;
  cases.push_back(StepCase("one step", "outlier", extreme, raw));

  v1::TrainingSpec hidden = StepSpec();
  hidden.mutable_options()->set_hidden_size(2);
  cases.push_back(StepCase("one step, hidden layer", "lone", LoneNode(1), hidden));

  v1::TrainingSpec poisson = StepSpec();
  poisson.mutable_options()->set_batch_size(1);
  cases.push_back(StepCase("one Poisson step", "lone", LoneNode(1), poisson));
  poisson.mutable_options()->set_batch_size(4);
  cases.push_back(StepCase("one Poisson step", "outlier", Opponent(19), poisson));
  cases.back().tight = false;  // the others' batches are noise too

  v1::TrainingSpec two = StepSpec();
  two.mutable_options()->set_steps(2);
  two.mutable_options()->set_batch_size(1);
  two.mutable_options()->set_learning_rate(1);
  cases.push_back(StepCase("two Poisson steps, both seen", "lone", LoneNode(1), two));
  cases.back().tight = false;
  cases.push_back(TwoVersionsCase(Charged::kBoth));
  return cases;
}

std::vector<Case> SageCases() { return {SageCase("SAGE step", 8), SageCase("SAGE Poisson step", 4)}; }

std::vector<Case> ListedCases() { return {ListedCase("listed", 1), ListedCase("listed, outlier", -1)}; }

std::vector<Case> EvaluationCases() {
  return {EvaluationCase("hub", {0, 0, 1}), EvaluationCase("outlier", {0, 0, kExtreme})};
}

}  // namespace dpar::audit
