#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/progress.h"
#include "core/error.h"
#include "core/graph/generate.h"
#include "core/graph/local_graph.h"
#include "core/graph/split.h"
#include "core/random/random.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kMaxLabelsShown = 20;

Json SizesJson(const GraphView& graph) {
  return {{"node_count", graph.sizes.node_count},
          {"feature_count", graph.sizes.feature_count},
          {"class_count", graph.sizes.class_count},
          {"edge_count", graph.edges.edge_count()}};
}

std::string SizesText(const GraphView& graph) {
  return absl::StrCat(FormatCount(graph.sizes.node_count), " nodes, ", FormatCount(graph.edges.edge_count()),
                      " edges, ", FormatCount(graph.sizes.feature_count), " features, ",
                      FormatCount(graph.sizes.class_count), " classes");
}

struct GenerateOptions {
  GeneratorOptions generator;
  std::string output;
};

absl::StatusOr<int> RunGenerate(Session& session, const GenerateOptions& options) {
  DPAR_RETURN_IF_ERROR(CheckGraphOutput("output", options.output));
  ProgressLine line(session.err(), session.terminal());
  ProgressState state;
  state.stage = "generating";
  line.Update(state);
  DPAR_ASSIGN_OR_RETURN(const Graph graph, GenerateGraph(options.generator, session.random()));
  state.stage = "writing";
  line.Update(state);
  DPAR_RETURN_IF_ERROR(AsLocal(WriteLocalGraph(options.output, graph)));
  line.Finish();
  if (session.json()) {
    Json json = {{"file", options.output}};
    json.update(SizesJson(graph));
    session.PrintJson(json);
    return kDone;
  }
  session.out() << "wrote " << options.output << ": " << SizesText(graph) << "\n";
  if (!IsSealedName(options.output)) {
    session.out() << "next: dpar graph inspect " << options.output << ", dpar upload " << options.output << "\n";
  }
  return kDone;
}

void AddGenerate(CLI::App& group, Command& chosen) {
  const auto options = std::make_shared<GenerateOptions>();
  GeneratorOptions& generator = options->generator;
  CLI::App* command = group.add_subcommand("generate", "Make a synthetic graph: a stochastic block model");
  command->add_option("-o,--output", options->output, "File to write (.npz or .sealed)")->required();
  command->add_option("--nodes", generator.nodes, "Nodes")->capture_default_str();
  command->add_option("--classes", generator.classes, "Classes")->capture_default_str();
  command->add_option("--features", generator.features, "Feature columns")->capture_default_str();
  command->add_option("--degree", generator.average_degree, "Average degree")->capture_default_str();
  command
      ->add_option("--degree-exponent", generator.degree_exponent,
                   "Exponent of a power law of degrees, 2.1 to 10; 0: all nodes alike")
      ->capture_default_str();
  command->add_option("--homophily", generator.homophily, "Probability that an edge stays in its class, 0 to 1")
      ->capture_default_str();
  command->add_option("--features-per-node", generator.features_per_node, "Feature entries drawn for a node")
      ->capture_default_str();
  command->add_option("--signal", generator.signal, "Probability that an entry tells the class, 0 to 1")
      ->capture_default_str();
  command->footer(Examples("  dpar graph generate -o graph.npz --nodes 5000 --classes 5 --homophily 0.7"));
  command->callback([options, &chosen] { chosen = [options](Session& s) { return RunGenerate(s, *options); }; });
}

struct DegreeSummary {
  int64_t smallest = 0;
  int64_t median = 0;
  int64_t largest = 0;
  int64_t isolated = 0;
};

DegreeSummary SummariseDegrees(const GraphView& graph) {
  DegreeSummary summary;
  if (graph.sizes.node_count == 0) {
    return summary;
  }
  std::vector<int64_t> degrees;
  degrees.reserve(static_cast<size_t>(graph.sizes.node_count));
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    degrees.push_back(static_cast<int64_t>(graph.edges.neighbours_of(node).size()));
  }
  std::sort(degrees.begin(), degrees.end());
  summary.smallest = degrees.front();
  summary.median = degrees[degrees.size() / 2];
  summary.largest = degrees.back();
  summary.isolated = std::upper_bound(degrees.begin(), degrees.end(), 0) - degrees.begin();
  return summary;
}

double PerNode(int64_t count, const GraphView& graph) {
  return graph.sizes.node_count == 0 ? 0 : static_cast<double>(count) / static_cast<double>(graph.sizes.node_count);
}

std::vector<int64_t> CountLabels(const GraphView& graph) {
  std::vector<int64_t> counts(static_cast<size_t>(graph.sizes.class_count), 0);
  for (const int32_t label : graph.labels) {
    if (label != kUnlabelled) {
      ++counts[static_cast<size_t>(label)];
    }
  }
  return counts;
}

void PrintInspection(Session& session, const std::string& path, const GraphView& graph, const ImportReport& report,
                     bool counted) {
  const DegreeSummary degrees = SummariseDegrees(graph);
  const std::vector<int64_t> labels = CountLabels(graph);
  session.out() << path << "\n"
                << "  nodes     " << FormatCount(graph.sizes.node_count) << "\n"
                << "  edges     " << FormatCount(graph.edges.edge_count()) << " (degree "
                << absl::StrFormat("%.1f", PerNode(2 * graph.edges.edge_count(), graph)) << " on average, "
                << degrees.smallest << " / " << degrees.median << " / " << degrees.largest << " least / median / most; "
                << FormatCount(degrees.isolated) << " isolated)\n"
                << "  features  " << FormatCount(graph.sizes.feature_count) << " ("
                << absl::StrFormat("%.1f", PerNode(static_cast<int64_t>(graph.features.columns.size()), graph))
                << " a node on average)\n"
                << "  classes   " << graph.sizes.class_count
                << (counted ? " (by the labels; an upload needs --classes, since the file has no num_classes)" : "")
                << "\n";
  const auto shown = std::min<int64_t>(kMaxLabelsShown, static_cast<int64_t>(labels.size()));
  for (int64_t label = 0; label < shown; ++label) {
    session.out() << absl::StrFormat("    %-7d %s\n", label, FormatCount(labels[static_cast<size_t>(label)]));
  }
  if (shown < static_cast<int64_t>(labels.size())) {
    session.out() << "    and " << static_cast<int64_t>(labels.size()) - shown << " more\n";
  }
  session.out() << "    none    " << FormatCount(graph.CountUnlabelled()) << "\n"
                << "  import    would symmetrise " << FormatCount(report.edges_symmetrised) << " directed edges, merge "
                << FormatCount(report.duplicates_merged) << " duplicates, drop "
                << FormatCount(report.self_loops_dropped) << "\n            self loops and "
                << FormatCount(report.zero_features_dropped) << " zero features\n";
}

Json InspectionJson(const std::string& path, const GraphView& graph, const ImportReport& report, bool counted) {
  const DegreeSummary degrees = SummariseDegrees(graph);
  Json json = {{"file", path}};
  json.update(SizesJson(graph));
  json["classes_from_labels"] = counted;
  json["degree"] = {{"mean", PerNode(2 * graph.edges.edge_count(), graph)},
                    {"least", degrees.smallest},
                    {"median", degrees.median},
                    {"most", degrees.largest},
                    {"isolated", degrees.isolated}};
  json["features_per_node"] = PerNode(static_cast<int64_t>(graph.features.columns.size()), graph);
  json["label_counts"] = CountLabels(graph);
  json["import"] = {{"edges_symmetrised", report.edges_symmetrised},
                    {"duplicates_merged", report.duplicates_merged},
                    {"self_loops_dropped", report.self_loops_dropped},
                    {"unlabelled_nodes", graph.CountUnlabelled()},
                    {"zero_features_dropped", report.zero_features_dropped}};
  return json;
}

absl::StatusOr<int> RunInspect(Session& session, const std::string& path) {
  DPAR_RETURN_IF_ERROR(CheckInputFile("file", path));
  const auto local = LocalGraph::Open(path);
  DPAR_RETURN_IF_ERROR(AsLocal(local.status()));
  const auto graph = local->View();
  DPAR_RETURN_IF_ERROR(AsLocal(graph.status()));
  if (session.json()) {
    session.PrintJson(InspectionJson(path, *graph, local->report(), local->classes_counted()));
  } else {
    PrintInspection(session, path, *graph, local->report(), local->classes_counted());
  }
  return kDone;
}

void AddInspect(CLI::App& group, Command& chosen) {
  const auto path = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand("inspect", "Show what is in a graph file and what an upload would do to it");
  command->add_option("FILE", *path, "Graph file (npz or sealed)")->required();
  command->footer(Examples("  dpar graph inspect graph.npz"));
  command->callback([path, &chosen] { chosen = [path](Session& s) { return RunInspect(s, *path); }; });
}

struct SplitOptions {
  std::string input;
  std::string train;
  std::string test;
  double test_share = 0.2;
  std::optional<int64_t> classes;
};

absl::StatusOr<int> RunSplit(Session& session, const SplitOptions& options) {
  DPAR_RETURN_IF_ERROR(CheckInputFile("file", options.input));
  DPAR_RETURN_IF_ERROR(CheckGraphOutput("train", options.train));
  DPAR_RETURN_IF_ERROR(CheckGraphOutput("test", options.test));
  if (options.train == options.test) {
    return InvalidField("test", "--train and --test name the same file");
  }
  const auto local = LocalGraph::OpenStated(options.input, options.classes);
  DPAR_RETURN_IF_ERROR(AsLocal(local.status()));
  const auto whole = local->View();
  DPAR_RETURN_IF_ERROR(AsLocal(whole.status()));
  DPAR_ASSIGN_OR_RETURN(const SlotSplit split,
                        SplitSlots(whole->sizes.node_count, options.test_share, session.random()));
  const Graph test = InducedSubgraph(*whole, split.test);
  const Graph train = InducedSubgraph(*whole, split.train);
  DPAR_RETURN_IF_ERROR(AsLocal(WriteLocalGraph(options.train, train)));
  DPAR_RETURN_IF_ERROR(AsLocal(WriteLocalGraph(options.test, test)));
  const int64_t removed = whole->edges.edge_count() - train.edge_count() - test.edge_count();
  if (session.json()) {
    Json train_json = {{"file", options.train}};
    train_json.update(SizesJson(train));
    Json test_json = {{"file", options.test}};
    test_json.update(SizesJson(test));
    session.PrintJson({{"train", train_json}, {"test", test_json}, {"edges_removed", removed}});
    return kDone;
  }
  session.out() << "wrote " << options.train << ": " << SizesText(train) << "\n"
                << "wrote " << options.test << ": " << SizesText(test) << "\n"
                << "removed " << FormatCount(removed) << " edges between the parts\n";
  return kDone;
}

void AddSplit(CLI::App& group, Command& chosen) {
  const auto options = std::make_shared<SplitOptions>();
  CLI::App* command = group.add_subcommand("split", "Split a graph at random; edges between the parts are removed");
  command->add_option("FILE", options->input, "Graph file (npz or sealed)")->required();
  command->add_option("--train", options->train, "File for the training part (.npz or .sealed)")->required();
  command->add_option("--test", options->test, "File for the test part (.npz or .sealed)")->required();
  command->add_option("--test-share", options->test_share, "Share of the nodes in the test part")
      ->capture_default_str();
  command->add_option("--classes", options->classes, "Number of classes, unless the file states it");
  command->footer(Examples("  dpar graph split graph.npz --train train.npz --test test.npz --test-share 0.2"));
  command->callback([options, &chosen] { chosen = [options](Session& s) { return RunSplit(s, *options); }; });
}

}  // namespace

void AddGraphCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddCommandGroup(app, "graph", "generate, inspect, convert or split graph files", kLocalGroup);
  AddGenerate(*group, chosen);
  AddInspect(*group, chosen);
  AddSplit(*group, chosen);
  AddConvertCommand(*group, chosen);
}

}  // namespace dpar
