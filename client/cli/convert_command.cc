#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/progress.h"
#include "core/error.h"
#include "core/graph/csv_file.h"
#include "core/graph/graphml_file.h"
#include "core/graph/local_graph.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

struct ConvertOptions {
  std::string input;   // npz, sealed or GraphML; or
  CsvGraphFiles text;  // text files
  bool sparse_features = false;
  std::optional<int64_t> nodes;
  std::optional<int64_t> feature_count;
  std::optional<int64_t> classes;
  std::string output;
};

bool NamesText(const ConvertOptions& options) {
  return !options.text.edges.empty() || !options.text.features.empty() || !options.text.labels.empty() ||
         options.sparse_features;
}

absl::Status CheckInput(const ConvertOptions& options) {
  if (!NamesText(options)) {
    if (options.input.empty()) {
      return InvalidField("file", "give a graph file, or text files with --edges, --features and --labels");
    }
    return CheckInputFile("file", options.input);
  }
  if (!options.input.empty()) {
    return InvalidField("file", "give a graph file or text files, not both");
  }
  DPAR_RETURN_IF_ERROR(CheckInputFile("edges", options.text.edges));
  DPAR_RETURN_IF_ERROR(CheckInputFile("features", options.text.features));
  return CheckInputFile("labels", options.text.labels);
}

// The sizes that text files are read with. They are public, so they are stated; 0 stands for the lines or columns of
// dense features.
absl::StatusOr<PublicSizes> StatedSizes(const ConvertOptions& options) {
  for (const std::optional<int64_t>& size : {options.nodes, options.feature_count, options.classes}) {
    if (size.has_value() && *size < 1) {
      return InvalidField("nodes", "--nodes, --feature-count and --classes must be above 0");
    }
  }
  if (!options.input.empty()) {
    return options.nodes.has_value() || options.feature_count.has_value()
               ? InvalidField("nodes", "--nodes and --feature-count belong to text files; a graph file has these sizes")
               : absl::StatusOr<PublicSizes>(PublicSizes());
  }
  const bool dense_sizes = !options.sparse_features || (options.nodes.has_value() && options.feature_count.has_value());
  if (!options.classes.has_value() || !dense_sizes) {
    return InvalidField("classes",
                        "text files need --classes, and with --sparse-features also --nodes and --feature-count: a "
                        "dataset's sizes are public and must be known without its content");
  }
  return PublicSizes{options.nodes.value_or(0), options.feature_count.value_or(0), *options.classes};
}

Json ConversionJson(const std::string& path, const GraphView& graph, const ImportReport& report) {
  Json json = {{"node_count", graph.sizes.node_count},
               {"feature_count", graph.sizes.feature_count},
               {"class_count", graph.sizes.class_count},
               {"edge_count", graph.edges.edge_count()},
               {"import",
                {{"edges_symmetrised", report.edges_symmetrised},
                 {"duplicates_merged", report.duplicates_merged},
                 {"self_loops_dropped", report.self_loops_dropped},
                 {"unlabelled_nodes", graph.CountUnlabelled()},
                 {"zero_features_dropped", report.zero_features_dropped}}}};
  if (IsCsvName(path)) {
    const CsvGraphFiles files = CsvFilesOf(path);
    json["files"] = {{"edges", files.edges}, {"features", files.features}, {"labels", files.labels}};
  } else {
    json["file"] = path;
  }
  return json;
}

void PrintConversion(Session& session, const std::string& path, const GraphView& graph, const ImportReport& report) {
  session.out() << "wrote " << path << ": " << FormatCount(graph.sizes.node_count) << " nodes, "
                << FormatCount(graph.edges.edge_count()) << " edges, " << FormatCount(graph.sizes.feature_count)
                << " features, " << FormatCount(graph.sizes.class_count) << " classes\n"
                << "symmetrised " << FormatCount(report.edges_symmetrised) << " directed edges, merged "
                << FormatCount(report.duplicates_merged) << " duplicates, dropped "
                << FormatCount(report.self_loops_dropped) << " self loops and "
                << FormatCount(report.zero_features_dropped) << " zero features; "
                << FormatCount(graph.CountUnlabelled()) << " nodes have no label\n";
  if (IsCsvName(path)) {
    const CsvGraphFiles files = CsvFilesOf(path);
    session.out() << "files: " << files.edges << ", " << files.features << ", " << files.labels << "\n"
                  << "next: dpar graph convert --edges " << files.edges << " --features " << files.features
                  << " --sparse-features --labels " << files.labels << " --nodes " << graph.sizes.node_count
                  << " --feature-count " << graph.sizes.feature_count << " --classes " << graph.sizes.class_count
                  << " -o FILE.npz\n";
  } else if (IsNpzName(path)) {
    session.out() << "next: dpar graph inspect " << path << ", dpar upload " << path << "\n";
  }
}

absl::Status CheckOutput(const std::string& path) {
  if (IsCsvName(path)) {
    return CheckOutputFile("output", CsvFilesOf(path).edges);
  }
  if (!IsGraphMlName(path) && !IsSealedName(path) && !IsNpzName(path)) {
    return InvalidField("output",
                        absl::StrCat("--output must end in .npz, .sealed, .graphml or .csv; not '", path, "'"));
  }
  return CheckOutputFile("output", path);
}

absl::Status WriteGraph(const std::string& path, const GraphView& graph) {
  if (IsCsvName(path)) {
    return WriteCsvGraph(CsvFilesOf(path), graph);
  }
  return IsGraphMlName(path) ? WriteGraphMlFile(path, graph) : WriteLocalGraph(path, graph);
}

class Conversion {
 public:
  Conversion(Session& session, const ConvertOptions& options)
      : session_(session), options_(options), line_(session.err(), session.terminal()) {}

  absl::StatusOr<int> Run() {
    Say("reading");
    if (options_.input.empty()) {
      DPAR_ASSIGN_OR_RETURN(const PublicSizes declared, StatedSizes(options_));
      const absl::StatusOr<ImportedGraph> imported = ReadCsvGraph(options_.text, GraphLimits(), declared);
      DPAR_RETURN_IF_ERROR(AsLocal(imported.status()));
      return Write(imported->graph, imported->report);
    }
    if (IsGraphMlName(options_.input)) {
      const absl::StatusOr<ImportedGraph> imported = ReadGraphMlFile(options_.input, GraphLimits(), options_.classes);
      DPAR_RETURN_IF_ERROR(AsLocal(imported.status()));
      return Write(imported->graph, imported->report);
    }
    const absl::StatusOr<LocalGraph> input = LocalGraph::OpenStated(options_.input, options_.classes);
    DPAR_RETURN_IF_ERROR(AsLocal(input.status()));
    const absl::StatusOr<GraphView> graph = input->View();
    DPAR_RETURN_IF_ERROR(AsLocal(graph.status()));
    return Write(*graph, input->report());
  }

 private:
  absl::StatusOr<int> Write(const GraphView& graph, const ImportReport& report) {
    Say("writing");
    const std::string& path = options_.output;
    DPAR_RETURN_IF_ERROR(AsLocal(WriteGraph(path, graph)));
    line_.Finish();
    if (session_.json()) {
      session_.PrintJson(ConversionJson(path, graph, report));
    } else {
      PrintConversion(session_, path, graph, report);
    }
    return kDone;
  }

  void Say(const std::string& stage) {
    ProgressState state;
    state.stage = stage;
    line_.Update(state);
  }

  Session& session_;
  const ConvertOptions& options_;
  ProgressLine line_;
};

absl::StatusOr<int> RunConvert(Session& session, ConvertOptions options) {
  DPAR_RETURN_IF_ERROR(CheckInput(options));
  DPAR_RETURN_IF_ERROR(StatedSizes(options).status());
  DPAR_RETURN_IF_ERROR(CheckOutput(options.output));
  options.text.feature_form =
      options.sparse_features ? CsvGraphFiles::FeatureForm::kSparse : CsvGraphFiles::FeatureForm::kDense;
  return Conversion(session, options).Run();
}

}  // namespace

void AddConvertCommand(CLI::App& group, Command& chosen) {
  const auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = group.add_subcommand("convert", "Convert between npz, CSV edge lists, GraphML and sealed graphs");
  command->add_option("FILE", options->input, "Graph file (npz, sealed or graphml); or text files:");
  command->add_option("--edges", options->text.edges, "Lines of source,target; nodes are counted from 0");
  command->add_option("--features", options->text.features, "A line of numbers for each node, in order");
  command->add_flag("--sparse-features", options->sparse_features, "--features holds lines of node,column,value");
  command->add_option("--labels", options->text.labels, "Lines of node,label, or a label for each node,\nin order");
  command->add_option("--nodes", options->nodes, "Nodes of text files, some of them perhaps unnamed");
  command->add_option("--feature-count", options->feature_count, "Feature columns of text files");
  command->add_option("--classes", options->classes,
                      "Number of classes, unless the file states it. It is\npublic, and never counted from the labels");
  command->add_option("-o,--output", options->output, "File to write (.npz, .sealed, .graphml; .csv is\nthree files)")
      ->required();
  command->footer(
      Examples("  dpar graph convert --edges edges.csv --features features.csv --labels labels.csv \\\n"
               "      --classes 3 -o small.npz\n"
               "  dpar graph convert --edges edges.tsv.gz --features triples.csv.gz --sparse-features \\\n"
               "      --labels labels.csv --nodes 300 --feature-count 60 --classes 3 -o small.npz\n"
               "  dpar graph convert graph.npz -o graph.sealed\n"
               "  dpar graph convert graph.npz -o graph.graphml\n"
               "  dpar graph convert graph.npz -o graph.csv\n"
               "Errors name file and line: edges[7] is line 7 of the edges."));
  command->callback([options, &chosen] { chosen = [options](Session& s) { return RunConvert(s, *options); }; });
}

}  // namespace dpar
