// How fast DP-APPR is, and how it grows: build/release/bin/appr_benchmark [--data DIR] [--largest NODES] [--scratch
// DIR]
//
// Three parts, each beside a plain form measured in the same run:
//   1. the solver on real graphs (alpha .25, rho 1e-4, gamma 1e-4), beside the synchronous iteration as textbooks print
//   it;
//   2. solver and selection on power-law graphs from 1e5 to NODES nodes (1e7 unless said otherwise), average degree 20,
//      beside the selection that draws noise for every slot;
//   3. a job's worth of rows on the largest of them, from a sealed file, in a process of its own: time and peak memory.
// Graphs are generated and sealed below the scratch directory (/tmp), 1.3 GB for the largest, and removed.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/appr/private_rows.h"
#include "core/appr/selection.h"
#include "core/appr/solver.h"
#include "core/appr/testing/reference.h"
#include "core/graph/generate.h"
#include "core/graph/graph_file.h"
#include "core/graph/sealed_graph.h"
#include "core/parallel.h"
#include "core/random/secure_random.h"
#include "tests/benchmark/measure.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr int kRepeats = 7;  // of each measurement, alternating with what stands beside it; the fastest counts
constexpr int64_t kSeeds = 200;
constexpr int64_t kChosen = 4;  // K
constexpr size_t kDenseDraws = 3;
constexpr double kScale = 0.01;         // of the noise in selections
constexpr int64_t kSmallest = 100'000;  // nodes of the smallest generated graph
constexpr double kAverageDegree = 20;
constexpr double kDegreeExponent = 2.5;

constexpr double kMebibyte = 1 << 20;

double WallOf(const std::function<void()>& work) { return SecondsOf(work, WallSeconds); }

bool Continue() { return true; }

SparseVector MustSolve(ApprSolver& solver, const EdgesView& edges, int32_t seed) {
  return solver.Solve(edges, seed, Continue).value();
}

// Microseconds a row, of the fastest repetition. Every repetition has seeds of its own, so that no row is met warm.
double MicrosPerRow(const EdgesView& edges, SecureRandom& random, const std::function<void(int32_t)>& solve) {
  double best = 1e9;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const std::vector<int32_t> seeds = DrawSeeds(edges.node_count(), kSeeds, random);
    best = std::min(best, WallOf([&] { std::for_each(seeds.begin(), seeds.end(), solve); }) / kSeeds * 1e6);
  }
  return best;
}

void MeasureSolver(const std::string& name, const EdgesView& edges) {
  SecureRandom random;
  for (const bool self_loops : {false, true}) {
    ApprParameters parameters;
    parameters.self_loops = self_loops;
    ApprSolver solver(parameters);
    testing::TextbookIsta textbook(edges, parameters);
    const double ours = MicrosPerRow(edges, random, [&](int32_t seed) { MustSolve(solver, edges, seed); });
    const double plain = MicrosPerRow(edges, random, [&](int32_t seed) { textbook.Solve(seed); });
    absl::PrintF("  %-14s %-10s %10.1f %12.1f %9.1fx\n", name, self_loops ? "yes" : "no", ours, plain, plain / ours);
  }
}

void MeasureRealGraphs(const std::string& data) {
  absl::PrintF("1. Solver, microseconds a row\n  %-14s %-10s %10s %12s %10s\n", "graph", "self loops", "solver",
               "textbook", "faster");
  for (const std::string name : {"cora_ml", "coauthor_cs", "coauthor_phy"}) {
    const std::string path = absl::StrCat(data, "/", name, ".npz");
    const auto imported = ReadGraphFile(path, GraphLimits(), std::nullopt);
    if (imported.ok()) {
      MeasureSolver(name, imported->graph.edges());
    } else {
      absl::PrintF("  %-14s not measured: %s\n", name, imported.status().message());
    }
  }
}

// What was measured on the graph of one size.
struct Growth {
  explicit Growth(const std::string& path) : graph(SealedGraph::Open(path).value()), edges(graph.Edges().value()) {}

  SealedGraph graph;
  EdgesView edges;
  std::vector<SparseVector> vectors;
  double solver = 1e9;  // microseconds a row
  double em = 1e9;      // of one selection
  double gm = 1e9;      //
  double dense_em = 0;  // of one selection over all slots
};

double MicrosPerSelection(const Growth& growth, ScoreNoise noise, SecureRandom& random) {
  return WallOf([&] {
           for (const SparseVector& vector : growth.vectors) {
             SelectTopK(vector, growth.edges.node_count(), kChosen, noise, kScale, random);
           }
         }) /
         static_cast<double>(growth.vectors.size()) * 1e6;
}

void Measure(Growth& growth, SecureRandom& random) {
  ApprSolver solver{ApprParameters()};
  const std::vector<int32_t> seeds = DrawSeeds(growth.edges.node_count(), kSeeds, random);
  growth.vectors.clear();
  const double seconds = WallOf([&] {
    for (const int32_t seed : seeds) {
      growth.vectors.push_back(MustSolve(solver, growth.edges, seed));
    }
  });
  growth.solver = std::min(growth.solver, seconds / kSeeds * 1e6);
  growth.em = std::min(growth.em, MicrosPerSelection(growth, ScoreNoise::kGumbel, random));
  growth.gm = std::min(growth.gm, MicrosPerSelection(growth, ScoreNoise::kGaussian, random));
}

void MeasureDense(Growth& growth, SecureRandom& random) {
  growth.dense_em = WallOf([&] {
                      for (size_t i = 0; i < kDenseDraws; ++i) {
                        testing::DenseTopK(growth.vectors[i], growth.edges.node_count(), kChosen, ScoreNoise::kGumbel,
                                           kScale, random);
                      }
                    }) /
                    kDenseDraws * 1e6;
}

double MeanSupport(const Growth& growth) {
  double entries = 0;
  for (const SparseVector& vector : growth.vectors) {
    entries += static_cast<double>(vector.ids.size());
  }
  return entries / static_cast<double>(growth.vectors.size());
}

void MeasureThreads(const EdgesView& edges) {
  SecureRandom random;
  const std::vector<int32_t> seeds = DrawSeeds(edges.node_count(), std::min<int64_t>(4000, edges.node_count()), random);
  double single = 0;
  for (const int threads : {1, 2}) {
    double best = 1e9;
    for (int repeat = 0; repeat < 3; ++repeat) {
      best = std::min(best, WallOf([&] {
                        SolveRows(edges, ApprParameters(), seeds, threads, [](int64_t) { return true; }).value();
                      }));
    }
    const double rate = static_cast<double>(seeds.size()) / best;
    single = threads == 1 ? rate : single;
    absl::PrintF("  rows per second on %d thread%s: %.0f (%.2fx)\n", threads, threads == 1 ? " " : "s", rate,
                 rate / single);
  }
}

void GenerateAndSeal(int64_t nodes, const std::string& path) {
  SecureRandom random;
  GeneratorOptions options;
  options.nodes = nodes;
  options.features = 16;
  options.features_per_node = 1;
  options.average_degree = kAverageDegree;
  options.degree_exponent = kDegreeExponent;
  std::optional<Graph> graph;
  const double generate = WallOf([&] { graph = GenerateGraph(options, random).value(); });
  const double seal = WallOf([&] {
    if (!WriteSealedGraph(path, *graph).ok()) {
      absl::PrintF("cannot write %s\n", path);
      _exit(1);
    }
  });
  absl::PrintF("  %9d nodes, %10d edges: generated in %.1f s, sealed in %.1f s, peak %.0f MB\n", nodes,
               graph->edge_count(), generate, seal, PeakBytes() / kMebibyte);
}

// All sizes in turn, again and again, so that whatever else the machine does hits them alike.
void MeasureGrowth(const std::vector<std::string>& files) {
  SecureRandom random;
  std::vector<Growth> sizes;
  for (const std::string& file : files) {
    sizes.emplace_back(file);
  }
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (Growth& growth : sizes) {
      Measure(growth, random);
    }
  }
  absl::PrintF("  microseconds a row; selections of %d\n  %9s %8s %9s %7s %8s %7s %8s %7s %11s\n", kChosen, "nodes",
               "support", "solver", "growth", "EM", "growth", "GM", "growth", "dense EM");
  for (Growth& growth : sizes) {
    MeasureDense(growth, random);
    absl::PrintF("  %9d %8.0f %9.1f %6.2fx %8.2f %6.2fx %8.2f %6.2fx %11.0f\n", growth.edges.node_count(),
                 MeanSupport(growth), growth.solver, growth.solver / sizes.front().solver, growth.em,
                 growth.em / sizes.front().em, growth.gm, growth.gm / sizes.front().gm, growth.dense_em);
  }
  MeasureThreads(sizes.back().edges);
}

void RunJob(const std::string& path) {
  PrivateRowsOptions options;
  options.noise = 1;
  SecureRandom random;
  std::optional<SealedGraph> graph;
  const double open = WallOf([&] { graph = SealedGraph::Open(path).value(); });
  GraphView view;
  const double check = WallOf([&] { view = graph->View().value(); });
  const double rows =
      WallOf([&] { DrawPrivateRows(view, options, HardwareThreads(), random, [](int64_t) { return true; }).value(); });
  const double file = static_cast<double>(fs::file_size(path)) / (1 << 20);
  absl::PrintF(
      "3. A job of %d private rows from a sealed file of %.0f MB\n"
      "  opened in %.2f ms, every section checked in %.2f s, rows in %.1f ms on %d threads\n"
      "  peak resident memory %.0f MB, %.2f times the file\n",
      options.rows, file, open * 1e3, check, rows * 1e3, HardwareThreads(), PeakBytes() / kMebibyte,
      PeakBytes() / kMebibyte / file);
}

// False if a part of it failed.
bool MeasureGeneratedGraphs(const std::string& scratch, int64_t largest) {
  absl::PrintF("2. Power-law graphs, average degree %.0f, exponent %.1f\n", kAverageDegree, kDegreeExponent);
  std::vector<std::string> files;
  bool made = true;
  for (int64_t nodes = kSmallest; nodes <= largest; nodes *= 10) {
    files.push_back(absl::StrCat(scratch, "/appr_benchmark.", getpid(), ".", nodes, ".sealed"));
    made = made && InChild([&] { GenerateAndSeal(nodes, files.back()); });
  }
  const bool complete = made && InChild([&] { MeasureGrowth(files); }) && InChild([&] { RunJob(files.back()); });
  for (const std::string& file : files) {
    fs::remove(file);
  }
  return complete;
}

int Main(const std::vector<std::string>& arguments) {
  const std::optional<BenchmarkFlags> flags = ReadFlags("appr_benchmark", arguments, kSmallest, 10'000'000);
  if (!flags.has_value()) {
    return 2;
  }
  MeasureRealGraphs(flags->data);
  if (!MeasureGeneratedGraphs(flags->scratch, flags->largest)) {
    absl::PrintF("a part of the measurement failed\n");
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace dpar

int main(int argc, char** argv) { return dpar::Main(std::vector<std::string>(argv + 1, argv + argc)); }
