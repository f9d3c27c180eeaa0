// How fast training is, and how it grows: build/release/bin/train_benchmark [--data DIR] [--largest NODES] [--scratch
// DIR]
//
// Four parts, the first two beside what is measured in the same run:
//   1. steps with a hidden layer (6,805-32-15, Poisson batches) beside the floor, which is the noise of one step and
//   one
//      pass over the weights, and beside LibTorch's autograd with the gradient of every row in memory (dense_step.h);
//   2. full-batch linear steps of the plan `auto` beside the same step in SciPy (scipy_step.py, which needs Debian's
//      python3-scipy; without it that column says so);
//   3. how a step grows with nodes (1e4 to NODES, 1e6 unless said otherwise), features, slots in a row, hidden units
//   and
//      threads;
//   4. peak memory of training on 1,000,000 nodes with 100 features each, from a sealed file of about 0.9 GB below the
//      scratch directory (/tmp), which is removed.
// Everything runs on one core, but for the rows about threads. Times are processor time, and wall time for the rows
// about threads. What stands side by side takes turns and the fastest turn of each counts, since others share the
// machine. Without the graphs of DIR (../shared/data), a generated one stands in for part 1, and part 2 is left out.
// Run it from the root of the repository.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/appr/private_rows.h"
#include "core/graph/generate.h"
#include "core/graph/graph_file.h"
#include "core/graph/sealed_graph.h"
#include "core/parallel.h"
#include "core/plan/plan.h"
#include "core/random/lattice.h"
#include "core/random/secure_random.h"
#include "core/random/subsets.h"
#include "core/train/descent.h"
#include "core/train/engine.h"
#include "core/train/kernels.h"
#include "core/train/mean.h"
#include "core/train/rows.h"
#include "core/train/train.h"
#include "tests/benchmark/dense_step.h"
#include "tests/benchmark/measure.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr int kTurns = 7;
constexpr int64_t kHidden = 32;
constexpr int64_t kApprRows = 70;
constexpr int64_t kApprSlots = 2;
constexpr double kEpsilon = 1;
constexpr int64_t kSmallest = 10'000;  // nodes of the smallest generated graph
constexpr size_t kFloorBlock = 2048;   // weights that stay in the cache between noise and update
constexpr const char* kOneThread = "OPENBLAS_NUM_THREADS";

// The fastest turn of something, in milliseconds.
class Best {
 public:
  void Take(double seconds) { milliseconds_ = std::min(milliseconds_, seconds * 1e3); }
  [[nodiscard]] double milliseconds() const { return milliseconds_; }

 private:
  double milliseconds_ = std::numeric_limits<double>::infinity();
};

std::optional<Graph> ReadGraph(const std::string& data, const std::string& name) {
  auto imported = ReadGraphFile(absl::StrCat(data, "/", name, ".npz"), GraphLimits(), std::nullopt);
  return imported.ok() ? std::optional(std::move(imported->graph)) : std::nullopt;
}

Graph Generate(int64_t nodes, int64_t features, int64_t features_per_node, int64_t classes) {
  SecureRandom random;
  GeneratorOptions options;
  options.nodes = nodes;
  options.features = features;
  options.features_per_node = features_per_node;
  options.classes = classes;
  return GenerateGraph(options, random).value();
}

Graph CoauthorCs(const std::string& data) {
  std::optional<Graph> graph = ReadGraph(data, "coauthor_cs");
  if (graph.has_value()) {
    return *std::move(graph);
  }
  absl::PrintF("  coauthor_cs is not in %s: a generated graph of its shape stands in\n", data);
  return Generate(18'333, 6'805, 60, 15);
}

// Rows of `slots` slots each, equally weighted, for `count` seeds.
ApprRows DrawnRows(int64_t nodes, int64_t count, int64_t slots) {
  SecureRandom random;
  ApprRows rows;
  for (const int64_t seed : SampleWithoutReplacement(random, nodes, count)) {
    rows.seeds.push_back(static_cast<int32_t>(seed));
    for (const int64_t slot : SampleWithoutReplacement(random, nodes, slots)) {
      rows.columns.push_back(static_cast<int32_t>(slot));
      rows.values.push_back(1 / static_cast<double>(slots));
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
  }
  return rows;
}

// A plan for steps whose time is measured: what the noise is calibrated to does not change it.
v1::Plan StepPlan(int64_t rows, double batch_size, int64_t hidden, int64_t steps) {
  v1::Plan plan;
  plan.set_steps(steps);
  plan.set_learning_rate(0.1);
  plan.set_momentum(0.9);
  plan.set_gradient_clip(1);
  plan.set_noise_multiplier(1);
  plan.set_lattice_bits(24);
  plan.set_hidden_size(hidden);
  plan.set_optimizer(v1::SGD);
  plan.set_transform(v1::SQRT_UNIT);
  plan.set_batch_size(batch_size);
  plan.set_sampling_rate(batch_size / static_cast<double>(rows));
  return plan;
}

// Training as Train() runs it, from prepared rows on, so that the steps alone are timed.
class Steps {
 public:
  Steps(const GraphView& graph, RowList rows, v1::Plan plan, std::vector<float> center, int threads = 1,
        double (*clock)() = CpuSeconds)
      : plan_(std::move(plan)),
        center_(std::move(center)),
        transform_(plan_.transform(), center_),
        rows_(std::move(rows)),
        prepared_(graph, transform_, rows_, plan_.hidden_size() > 0, [] { return true; }),
        shape_{graph.sizes.feature_count + 1, plan_.hidden_size(), graph.sizes.class_count},
        threads_(threads),
        clock_(clock),
        engine_(MakeEngine(prepared_, shape_, plan_.sampling_rate() == 1, "cpu", threads, [] { return true; })) {}

  // Seconds a step. The first is left out: it brings the arrays into memory.
  double Run() {
    const std::vector<double> ends = Ends();
    return (ends.back() - ends.front()) / static_cast<double>(ends.size() - 1);
  }

  // Seconds of the fastest step.
  double Fastest() {
    std::vector<double> ends = Ends();
    std::adjacent_difference(ends.begin(), ends.end(), ends.begin());
    return *std::min_element(ends.begin() + 1, ends.end());
  }

  [[nodiscard]] const WeightShape& shape() const { return shape_; }

 private:
  // When each step ended.
  std::vector<double> Ends() {
    std::vector<double> ends;
    const auto on_step = [&](int64_t /*done*/) { ends.push_back(clock_()); };
    Descend(
        plan_, shape_, rows_.count(), *engine_, threads_, random_, [] { return true; }, on_step)
        .value();
    return ends;
  }

  v1::Plan plan_;
  std::vector<float> center_;
  InputTransform transform_;
  RowList rows_;
  PreparedRows prepared_;
  WeightShape shape_;
  int threads_;
  double (*clock_)();
  SecureRandom random_;
  std::unique_ptr<GradientEngine> engine_;
};

// What no private step can do without: noise for every weight, and one pass over the weights.
class Floor {
 public:
  explicit Floor(const WeightShape& shape)
      : sum_(static_cast<size_t>(shape.count())), velocity_(sum_.size()), weights_(sum_.size()) {}

  void Run() {
    for (size_t first = 0; first < sum_.size(); first += kFloorBlock) {
      const size_t count = std::min(kFloorBlock, sum_.size() - first);
      AddLatticeNoise(random_, 1.0, 24, std::span(sum_).subspan(first, count));
      CpuKernels().momentum_update(count, 0.9F, 1.0, 0.1F, sum_.data() + first, velocity_.data() + first,
                                   weights_.data() + first);
    }
  }

 private:
  SecureRandom random_;
  std::vector<double> sum_;
  std::vector<float> velocity_;
  std::vector<float> weights_;
};

void MeasureBatch(const Graph& graph, const RowList& rows, int64_t batch_size) {
  constexpr int64_t kSteps = 50;
  SecureRandom random;
  Steps steps(graph, rows, StepPlan(rows.count(), static_cast<double>(batch_size), kHidden, kSteps), {});
  Floor floor(steps.shape());
  DenseStep dense(graph, kHidden);
  Best ours;
  Best least;
  Best autograd;
  for (int turn = 0; turn < kTurns; ++turn) {
    ours.Take(steps.Run());
    least.Take(SecondsOf([&] {
                 for (int64_t i = 0; i < kSteps; ++i) {
                   floor.Run();
                 }
               }) /
               kSteps);
    // Rows of two slots are left out of the reference, and count as rows of one: a batch has hardly any.
    dense.Load(SampleWithoutReplacement(random, graph.sizes.node_count, batch_size));
    autograd.Take(SecondsOf([&] { dense.Run(); }));
  }
  absl::PrintF("  %6d %10.3f %10.0f %10.3f %9.2f %12.2f %11.1f\n", batch_size, ours.milliseconds(),
               1e3 / ours.milliseconds(), least.milliseconds(), ours.milliseconds() / least.milliseconds(),
               autograd.milliseconds(), autograd.milliseconds() / ours.milliseconds());
}

void MeasureBatches(const std::string& data) {
  absl::PrintF("1. Steps with a hidden layer of %d, one core\n", kHidden);
  const Graph graph = CoauthorCs(data);
  const RowList rows =
      StructureRows(graph, DrawnRows(graph.sizes.node_count, kApprRows, kApprSlots), v1::APPR_AND_IDENTITY);
  absl::PrintF("  %6s %10s %10s %10s %9s %12s %11s\n", "batch", "ms", "steps/s", "floor ms", "x floor", "autograd ms",
               "x ours");
  for (const int64_t batch_size : {60, 256, 1024}) {
    MeasureBatch(graph, rows, batch_size);
  }
}

// Milliseconds of SciPy's step, or why there are none.
absl::StatusOr<double> ScipyMilliseconds(const std::string& graph_file) {
  constexpr const char* kPython = "/usr/bin/python3";  // Debian's, which finds Debian's SciPy
  constexpr const char* kScript = "tests/benchmark/scipy_step.py";
  if (!fs::exists(kScript)) {
    return absl::NotFoundError(absl::StrCat(kScript, " is not below this directory"));
  }
  FILE* pipe = popen(absl::StrCat(kPython, " ", kScript, " '", graph_file, "' 10").c_str(), "r");
  if (pipe == nullptr) {
    return absl::UnavailableError("no Python");
  }
  std::array<char, 64> line{};
  const bool printed = std::fgets(line.data(), line.size(), pipe) != nullptr;
  double milliseconds = 0;
  const bool complete =
      pclose(pipe) == 0 && printed && absl::SimpleAtod(absl::StripTrailingAsciiWhitespace(line.data()), &milliseconds);
  return complete ? absl::StatusOr<double>(milliseconds) : absl::UnavailableError("SciPy is not installed");
}

void MeasureLinear(const std::string& data, const std::string& name, double delta) {
  const std::optional<Graph> graph = ReadGraph(data, name);
  if (!graph.has_value()) {
    absl::PrintF("  %-14s not measured: it is not in %s\n", name, data);
    return;
  }
  v1::TrainingSpec spec;
  spec.set_epsilon(kEpsilon);
  spec.set_delta(delta);
  v1::Plan plan = MakePlan(spec, graph->sizes).value();
  plan.set_steps(20);
  SecureRandom random;
  std::vector<float> center;
  if (plan.has_mean()) {
    center = PrivateMean(plan, *graph, random, [] { return true; }).value();
  }
  const bool centred = !center.empty();
  Steps steps(*graph, IdentityRows(*graph), plan, center);
  Steps all_cores(*graph, IdentityRows(*graph), plan, std::move(center), HardwareThreads(), WallSeconds);
  Best ours;
  Best on_all_cores;
  Best scipy;
  std::string missing;
  for (int turn = 0; turn < kTurns; ++turn) {
    // SciPy's is the fastest of its steps as well.
    ours.Take(steps.Fastest());
    on_all_cores.Take(all_cores.Fastest());
    const absl::StatusOr<double> milliseconds = ScipyMilliseconds(absl::StrCat(data, "/", name, ".npz"));
    if (milliseconds.ok()) {
      scipy.Take(*milliseconds / 1e3);
    } else {
      missing = std::string(milliseconds.status().message());
    }
  }
  absl::PrintF("  %-14s %-8s %10.2f %10.2f ", name, centred ? "yes" : "no", ours.milliseconds(),
               on_all_cores.milliseconds());
  if (missing.empty()) {
    absl::PrintF("%10.2f %10.1f %10.1f\n", scipy.milliseconds(), scipy.milliseconds() / ours.milliseconds(),
                 scipy.milliseconds() / on_all_cores.milliseconds());
  } else {
    absl::PrintF("not measured: %s\n", missing);
  }
}

void MeasureLinearSteps(const std::string& data) {
  absl::PrintF(
      "2. Full-batch linear steps of the plan `auto`, on one core and on all\n  %-14s %-8s %10s %10s %10s %10s %10s\n",
      "graph", "centred", "ms", "all cores", "SciPy ms", "x one", "x all");
  MeasureLinear(data, "coauthor_cs", 8e-4);
  MeasureLinear(data, "coauthor_phy", 1e-4);
}

// One line of a table of growth: milliseconds a step, and how often the line before fits into it.
class GrowthTable {
 public:
  explicit GrowthTable(const std::string& what) {
    absl::PrintF("  %-24s %12s %14s\n", what, "ms a step", "x line before");
  }

  void Add(int64_t size, Steps& steps) {
    Best best;
    for (int turn = 0; turn < kTurns; ++turn) {
      best.Take(steps.Run());
    }
    absl::PrintF("  %-24d %12.3f %14s\n", size, best.milliseconds(),
                 before_ == 0 ? "-" : absl::StrFormat("%.2f", best.milliseconds() / before_));
    before_ = best.milliseconds();
  }

 private:
  double before_ = 0;
};

void MeasureNodes(int64_t largest) {
  GrowthTable table("nodes (full batch)");
  for (int64_t nodes = kSmallest; nodes <= largest; nodes *= 10) {
    const Graph graph = Generate(nodes, 2'000, 20, 10);
    Steps steps(graph, IdentityRows(graph), StepPlan(nodes, static_cast<double>(nodes), 0, 4), {});
    table.Add(nodes, steps);
  }
}

void MeasureFeatures() {
  GrowthTable table("features (batch 256)");
  for (const int64_t features : {1'000, 10'000, 100'000}) {
    const Graph graph = Generate(20'000, features, 60, 10);
    Steps steps(graph, IdentityRows(graph), StepPlan(20'000, 256, kHidden, 10), {});
    table.Add(features, steps);
  }
}

void MeasureSlots() {
  const Graph graph = Generate(20'000, 2'000, 60, 10);
  GrowthTable table("slots in a row, K");
  for (const int64_t slots : {1, 2, 4, 8, 16, 32, 64}) {
    RowList rows = StructureRows(graph, DrawnRows(20'000, 2'000, slots), v1::APPR_ONLY);
    Steps steps(graph, std::move(rows), StepPlan(2'000, 256, kHidden, 10), {});
    table.Add(slots, steps);
  }
}

void MeasureHidden() {
  const Graph graph = Generate(20'000, 2'000, 60, 10);
  GrowthTable table("hidden units (batch 256)");
  for (const int64_t hidden : {0, 16, 32, 64, 128}) {
    Steps steps(graph, IdentityRows(graph), StepPlan(20'000, 256, hidden, 20), {});
    table.Add(hidden, steps);
  }
}

void MeasureThreads() {
  const Graph graph = Generate(200'000, 2'000, 20, 10);
  for (const int64_t hidden : {int64_t{0}, kHidden}) {
    GrowthTable table(hidden == 0 ? "threads (linear)" : "threads (hidden)");
    for (const int threads : {1, 2}) {
      Steps steps(graph, IdentityRows(graph), StepPlan(200'000, 200'000, hidden, 4), {}, threads, WallSeconds);
      table.Add(threads, steps);
    }
  }
}

void MeasureGrowth(int64_t largest) {
  absl::PrintF("3. Growth\n");
  MeasureNodes(largest);
  MeasureFeatures();
  MeasureSlots();
  MeasureHidden();
  MeasureThreads();
}

void TrainFromFile(const std::string& path) {
  const double start = PeakBytes();
  const SealedGraph sealed = SealedGraph::Open(path).value();
  const GraphView graph = sealed.View().value();
  v1::TrainingSpec spec;
  spec.set_epsilon(kEpsilon);
  spec.set_delta(1e-7);
  spec.mutable_options()->set_steps(3);
  const v1::Plan plan = MakePlan(spec, graph.sizes).value();
  SecureRandom random;
  TrainingCallbacks callbacks;
  callbacks.keep_going = [] { return true; };
  callbacks.on_progress = [](TrainingStage, int64_t, int64_t) {};
  const double began = WallSeconds();
  Train(plan, graph, {"cpu", HardwareThreads()}, random, callbacks).value();
  const double seconds = WallSeconds() - began;
  const auto file = static_cast<double>(fs::file_size(path));
  const auto parameters = static_cast<double>((graph.sizes.feature_count + 1) * graph.sizes.class_count);
  const double bound = 1.2 * file + 10 * parameters * sizeof(float);
  absl::PrintF(
      "4. Memory: %d nodes, %d feature entries, %s private mean, %d steps in %.1f s\n"
      "  file %.0f MB, %.0f weights, peak resident %.0f MB (%.0f MB before the file was opened)\n"
      "  1.2 x file + 10 x weights in floats: %.0f MB; peak / that: %.3f\n",
      graph.sizes.node_count, graph.features.values.size(), plan.has_mean() ? "with" : "without", plan.steps(), seconds,
      file / 1e6, parameters, PeakBytes() / 1e6, start / 1e6, bound / 1e6, PeakBytes() / bound);
}

// False if a part of it failed.
bool MeasureMemory(const std::string& scratch) {
  const std::string path = absl::StrCat(scratch, "/train_benchmark.", getpid(), ".sealed");
  const bool complete = InChild([&] {
                          if (!WriteSealedGraph(path, Generate(1'000'000, 10'000, 100, 10)).ok()) {
                            absl::PrintF("cannot write %s\n", path);
                            _exit(1);
                          }
                        }) &&
                        InChild([&] { TrainFromFile(path); });
  fs::remove(path);
  return complete;
}

int Main(const std::vector<std::string>& arguments) {
  const std::optional<BenchmarkFlags> flags = ReadFlags("train_benchmark", arguments, kSmallest, 1'000'000);
  if (!flags.has_value()) {
    return 2;
  }
  // Each part in a process of its own, so that the last one's memory is measured from a small start.
  const bool complete = InChild([&] { MeasureBatches(flags->data); }) &&
                        InChild([&] { MeasureLinearSteps(flags->data); }) &&
                        InChild([&] { MeasureGrowth(flags->largest); }) && MeasureMemory(flags->scratch);
  if (!complete) {
    absl::PrintF("a part of the measurement failed\n");
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace dpar

int main(int argc, char** argv) {
  // OpenBLAS reads it when it is loaded, which is before main.
  if (std::getenv(dpar::kOneThread) == nullptr) {
    setenv(dpar::kOneThread, "1", 1);
    execv("/proc/self/exe", argv);
  }
  return dpar::Main(std::vector<std::string>(argv + 1, argv + argc));
}
