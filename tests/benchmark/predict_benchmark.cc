// How fast prediction is: build/release/bin/predict_benchmark [--nodes N] [--threads T]
//
// On a generated graph of N nodes (1e6), 10 N edges and 100 features, what each step along the edges takes, beside a
// bare gather in the same run: for every entry of the same index array, a copy of the neighbour's row of the same width
// to one place in the cache, and nothing else. A step reads the same rows, adds them up and writes a row for each node;
// mean-field takes two such passes an iteration, besides exponentials, logarithms and a product with a small matrix.
// Also the logits, which are no propagation. All times are CPU time, added up over threads.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/graph/generate.h"
#include "core/infer/logits.h"
#include "core/infer/mean_field.h"
#include "core/infer/power_iteration.h"
#include "core/infer/predict.h"
#include "core/infer/row_blocks.h"
#include "core/parallel.h"
#include "core/random/secure_random.h"
#include "tests/benchmark/measure.h"

namespace dpar {
namespace {

constexpr int kRepeats = 3;  // the fastest counts
constexpr int64_t kFeatures = 100;
constexpr double kDegree = 20;
constexpr int kMeanFieldPasses = 62;  // 30 iterations of two passes over the edges, and one for the result
constexpr double kAllowed = 2;        // times a bare gather

// CPU time of all threads: what else runs on the machine does not count, for the gather as little as for the rest.
double Fastest(const std::function<void()>& work) {
  double fastest = SecondsOf(work);
  for (int i = 1; i < kRepeats; ++i) {
    fastest = std::min(fastest, SecondsOf(work));
  }
  return fastest;
}

void Gather(const EdgesView& edges, const NodeMatrix& rows, int threads) {
  const auto bytes = static_cast<size_t>(rows.cols()) * sizeof(float);
  ForRowBlocks(rows.rows(), threads, [&](int64_t first, int64_t last) {
    std::vector<float> place(static_cast<size_t>(rows.cols()));
    for (int64_t node = first; node < last; ++node) {
      for (const int32_t neighbour : edges.neighbours_of(node)) {
        std::memcpy(place.data(), rows.row(neighbour).data(), bytes);
        // The copy counts as used, so that the compiler cannot leave it out.
        asm volatile("" : : "r"(place.data()) : "memory");
      }
    }
  });
}

Model RandomModel(int64_t classes, RandomSource& random) {
  Model model;
  model.transform = v1::UNIT;
  model.feature_count = kFeatures;
  model.class_count = classes;
  model.logit_noise = 0.5;
  for (int64_t i = 0; i < (kFeatures + 1) * classes; ++i) {
    model.weights.push_back(static_cast<float>(UniformReal(random) - 0.5));
  }
  return model;
}

bool Report(const std::string& what, double seconds, double gather) {
  const double ratio = seconds / gather;
  std::fflush(stdout);
  std::fputs(absl::StrFormat("  %-28s %8.1f ms   %5.2f times the gather%s\n", what, 1e3 * seconds, ratio,
                             ratio <= kAllowed ? "" : "   ABOVE 2")
                 .c_str(),
             stdout);
  return ratio <= kAllowed;
}

bool MeasureWidth(const Graph& graph, int64_t classes, bool mean_field, int threads, RandomSource& random) {
  const Model model = RandomModel(classes, random);
  absl::StatusOr<NodeMatrix> logits = absl::UnknownError("not computed");
  const double logit_time = SecondsOf([&] { logits = Logits(model, graph.features, threads, [] { return true; }); });
  const double gather = Fastest([&] { Gather(graph.edges(), *logits, threads); });
  std::fputs(absl::StrFormat("width %d (classes)\n  %-28s %8.1f ms\n  %-28s %8.1f ms\n", classes,
                             "logits, from features", 1e3 * logit_time, "bare gather", 1e3 * gather)
                 .c_str(),
             stdout);
  bool good = true;
  const auto power = [&](Normalisation normalisation, int64_t iterations) {
    PredictOptions options;
    options.normalisation = normalisation;
    options.iterations = iterations;
    return Fastest([&] { PowerIteration(graph.edges(), *logits, options, threads); });
  };
  // The difference of two runs leaves out what is done once.
  good &= Report("power, row, a step", (power(Normalisation::kRow, 5) - power(Normalisation::kRow, 1)) / 4, gather);
  good &= Report("power, symmetric, a step",
                 (power(Normalisation::kSymmetric, 5) - power(Normalisation::kSymmetric, 1)) / 4, gather);
  if (mean_field) {
    const double whole = SecondsOf([&] { MeanField(graph.edges(), *logits, /*weight=*/1, threads); });
    good &= Report("mean-field, a pass", whole / kMeanFieldPasses, gather);
    std::fputs(absl::StrFormat("  %-28s %8.1f s\n", "mean-field, all of it", whole).c_str(), stdout);
  }
  return good;
}

int Main(int argc, char** argv) {
  int64_t nodes = 1'000'000;
  int threads = HardwareThreads();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const bool known = flag == "--nodes" ? absl::SimpleAtoi(argv[i + 1], &nodes)
                                         : flag == "--threads" && absl::SimpleAtoi(argv[i + 1], &threads);
    if (!known || nodes < 1 || threads < 1) {
      std::fputs("usage: predict_benchmark [--nodes N] [--threads T]\n", stderr);
      return 2;
    }
  }
  SecureRandom random;
  GeneratorOptions options;
  options.nodes = nodes;
  options.features = kFeatures;
  options.average_degree = kDegree;
  options.features_per_node = 20;
  const absl::StatusOr<Graph> graph = GenerateGraph(options, random);
  if (!graph.ok()) {
    std::fputs((std::string(graph.status().message()) + "\n").c_str(), stderr);
    return 1;
  }
  std::fputs(
      absl::StrFormat("%d nodes, %d edges, %d features, %d threads\n", nodes, graph->edge_count(), kFeatures, threads)
          .c_str(),
      stdout);
  bool good = true;
  for (const int64_t classes : {10, 40}) {
    good &= MeasureWidth(*graph, classes, /*mean_field=*/true, threads, random);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace dpar

int main(int argc, char** argv) { return dpar::Main(argc, argv); }
