#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/feature_notes.h"
#include "client/cli/format.h"
#include "client/cli/graph_sizes.h"
#include "client/cli/progress.h"
#include "client/cli/public_draws.h"
#include "core/error.h"
#include "core/graph/feature_scales.h"
#include "core/graph/generate.h"
#include "core/graph/local_graph.h"
#include "core/random/random.h"
#include "core/status_macros.h"
#include "core/table/bank.h"

namespace dpar {
namespace {

constexpr int64_t kMaxLabelsShown = 20;

struct GenerateOptions {
  GeneratorOptions generator;
  std::string output;
  std::string tables;  // a directory
  bool nodes_given = false;
  std::optional<uint64_t> seed;
};

constexpr int64_t kBankAccounts = 50'000;

absl::StatusOr<int> GenerateTables(Session& session, const GenerateOptions& options, RandomSource& random) {
  if (!options.output.empty()) {
    return InvalidField("tables", "give --tables or --output, not both");
  }
  std::error_code error;
  std::filesystem::create_directories(options.tables, error);
  if (!std::filesystem::is_directory(options.tables, error)) {
    return InvalidField("tables", absl::StrCat("cannot make the directory '", options.tables, "'"));
  }
  const int64_t accounts = options.nodes_given ? options.generator.nodes : kBankAccounts;
  const auto bank = WriteBankTables(options.tables, accounts, random);
  DPAR_RETURN_IF_ERROR(AsLocal(bank.status()));
  if (session.json()) {
    session.PrintJson({{"nodes", bank->files.nodes},
                       {"edges", bank->files.edges},
                       {"schema", bank->schema},
                       {"accounts", bank->accounts},
                       {"transfers", bank->transfers}});
    return kDone;
  }
  session.out() << "wrote " << bank->files.nodes << ": " << FormatCount(bank->accounts) << " accounts\n"
                << "wrote " << bank->files.edges << ": " << FormatCount(bank->transfers) << " transfers\n"
                << "wrote " << bank->schema << "\n"
                << "next: dpar upload --schema " << bank->schema << " --nodes " << bank->files.nodes << " --edges "
                << bank->files.edges << "\n";
  return kDone;
}

absl::StatusOr<int> RunGenerate(Session& session, const GenerateOptions& options) {
  const std::unique_ptr<RandomSource> draws = PublicDraws(options.seed, session.random());
  RandomSource& random = *draws;
  if (!options.tables.empty()) {
    return GenerateTables(session, options, random);
  }
  DPAR_RETURN_IF_ERROR(CheckGraphOutput("output", options.output));
  ProgressLine line(session.err(), session.terminal());
  ProgressState state;
  state.stage = "generating";
  line.Update(state);
  DPAR_ASSIGN_OR_RETURN(const Graph graph, GenerateGraph(options.generator, random));
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
  CLI::App* command = group.add_subcommand("generate", "Make a synthetic graph (a stochastic block model), or tables");
  command->add_option("-o,--output", options->output, "File to write (.npz or .sealed)");
  command->add_option("--tables", options->tables,
                      "Directory for tables instead: a bank with accounts.csv,\ntransfers.csv and their schema");
  CLI::Option* nodes = command->add_option("--nodes", generator.nodes, "Nodes; of tables 50000 unless given");
  nodes->capture_default_str();
  command->add_option("--seed", options->seed, "The same seed gives the same files");
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
  command->footer(
      Examples("  dpar graph generate -o graph.npz --nodes 5000 --classes 5 --homophily 0.7\n"
               "  dpar graph generate --tables bank"));
  command->callback([options, nodes, &chosen] {
    options->nodes_given = nodes->count() > 0;
    chosen = [options](Session& s) { return RunGenerate(s, *options); };
  });
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

void PrintLabels(Session& session, const GraphView& graph, const std::vector<std::string>& names) {
  constexpr size_t kNameWidth = 7;
  const std::vector<int64_t> labels = CountLabels(graph);
  const size_t shown = std::min<size_t>(kMaxLabelsShown, labels.size());
  size_t width = kNameWidth;
  for (size_t label = 0; label < std::min(shown, names.size()); ++label) {
    width = std::max(width, names[label].size());
  }
  const auto line = [&](const std::string& name, int64_t count) {
    session.out() << absl::StrFormat("    %-*s %s\n", static_cast<int>(width), name, FormatCount(count));
  };
  for (size_t label = 0; label < shown; ++label) {
    line(names.empty() ? absl::StrCat(label) : names[label], labels[label]);
  }
  if (shown < labels.size()) {
    session.out() << "    and " << labels.size() - shown << " more\n";
  }
  line("none", graph.CountUnlabelled());
}

void PrintInspection(Session& session, const std::string& path, const GraphView& graph, const ImportReport& report,
                     bool counted, const std::vector<std::string>& names) {
  const DegreeSummary degrees = SummariseDegrees(graph);
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
  PrintLabels(session, graph, names);
  session.out() << "  import    would symmetrise " << FormatCount(report.edges_symmetrised) << " directed edges, merge "
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
  DPAR_RETURN_IF_ERROR(CheckGraphInput("file", path));
  const auto local = LocalGraph::Open(path);
  DPAR_RETURN_IF_ERROR(AsLocal(local.status()));
  const auto graph = local->View();
  DPAR_RETURN_IF_ERROR(AsLocal(graph.status()));
  const auto names = ReadLocalNames(path, graph->sizes);
  DPAR_RETURN_IF_ERROR(AsLocal(names.status()));
  if (session.json()) {
    Json json = InspectionJson(path, *graph, local->report(), local->classes_counted());
    if (!names->classes.empty()) {
      json["class_names"] = names->classes;
    }
    session.PrintJson(json);
  } else {
    PrintInspection(session, path, *graph, local->report(), local->classes_counted(), names->classes);
  }
  if (names->schema.empty()) {
    for (const std::string& note : FeatureNotes(MeasureFeatures(*graph))) {
      session.err() << "note: " << note << "\n";
    }
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

}  // namespace

void AddGraphCommands(CLI::App& app, Command& chosen) {
  CLI::App* group =
      AddCommandGroup(app, "graph", "generate, inspect, convert or split graph files and tables", kLocalGroup);
  AddGenerate(*group, chosen);
  AddInspect(*group, chosen);
  AddSplitCommand(*group, chosen);
  AddConvertCommand(*group, chosen);
  AddSchemaCommand(*group, chosen);
}

}  // namespace dpar
