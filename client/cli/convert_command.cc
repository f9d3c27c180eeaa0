#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/progress.h"
#include "client/cli/tables.h"
#include "core/error.h"
#include "core/graph/graphml_file.h"
#include "core/graph/local_graph.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

struct ConvertOptions {
  std::string input;      // npz, sealed or GraphML; or
  TableArguments tables;  // tables
  std::optional<int64_t> classes;
  std::string output;
};

absl::Status CheckInput(const ConvertOptions& options) {
  if (options.classes.has_value() && *options.classes < 1) {
    return InvalidField("classes", "--classes must be above 0");
  }
  if (!options.tables.given()) {
    return options.input.empty()
               ? InvalidField("file", "give a graph file, or tables with --schema, --nodes and --edges")
               : CheckGraphInput("file", options.input);
  }
  if (!options.input.empty()) {
    return InvalidField("file", "give a graph file or tables, not both");
  }
  if (options.classes.has_value()) {
    return InvalidField("classes", "the schema states the classes of tables; leave --classes out");
  }
  return CheckTableArguments(options.tables);
}

Json ConversionJson(const std::string& path, const GraphView& graph, const ImportReport& report) {
  return {{"node_count", graph.sizes.node_count},
          {"feature_count", graph.sizes.feature_count},
          {"class_count", graph.sizes.class_count},
          {"edge_count", graph.edges.edge_count()},
          {"import",
           {{"edges_symmetrised", report.edges_symmetrised},
            {"duplicates_merged", report.duplicates_merged},
            {"self_loops_dropped", report.self_loops_dropped},
            {"unlabelled_nodes", graph.CountUnlabelled()},
            {"zero_features_dropped", report.zero_features_dropped}}},
          {"file", path}};
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
  if (IsNpzName(path)) {
    session.out() << "next: dpar graph inspect " << path << ", dpar upload " << path << "\n";
  }
}

absl::Status CheckOutput(const std::string& path) {
  if (!IsGraphMlName(path) && !IsSealedName(path) && !IsNpzName(path)) {
    return InvalidField("output", absl::StrCat("--output must end in .npz, .sealed or .graphml; not '", path, "'"));
  }
  return CheckOutputFile("output", path);
}

// GraphML has no place for names.
absl::Status WriteGraph(const std::string& path, const GraphView& graph, const GraphNames& names) {
  return IsGraphMlName(path) ? WriteGraphMlFile(path, graph) : WriteLocalGraph(path, graph, names);
}

class Conversion {
 public:
  Conversion(Session& session, const ConvertOptions& options)
      : session_(session), options_(options), line_(session.err(), session.terminal()) {}

  absl::StatusOr<int> Run() {
    if (options_.tables.given()) {
      DPAR_ASSIGN_OR_RETURN(const TableSchema schema, LoadSchema(options_.tables, /*is_public=*/false));
      DPAR_ASSIGN_OR_RETURN(const TableGraph tables, LoadTables(session_, schema, options_.tables.files));
      return Write(tables.imported.graph, tables.imported.report, tables.names);
    }
    Say("reading");
    if (IsGraphMlName(options_.input)) {
      const absl::StatusOr<ImportedGraph> imported = ReadGraphMlFile(options_.input, GraphLimits(), options_.classes);
      DPAR_RETURN_IF_ERROR(AsLocal(imported.status()));
      return Write(imported->graph, imported->report, {});
    }
    const absl::StatusOr<LocalGraph> input = LocalGraph::OpenStated(options_.input, options_.classes);
    DPAR_RETURN_IF_ERROR(AsLocal(input.status()));
    const absl::StatusOr<GraphView> graph = input->View();
    DPAR_RETURN_IF_ERROR(AsLocal(graph.status()));
    const absl::StatusOr<GraphNames> names = ReadLocalNames(options_.input, graph->sizes);
    DPAR_RETURN_IF_ERROR(AsLocal(names.status()));
    return Write(*graph, input->report(), *names);
  }

 private:
  absl::StatusOr<int> Write(const GraphView& graph, const ImportReport& report, const GraphNames& names) {
    Say("writing");
    const std::string& path = options_.output;
    DPAR_RETURN_IF_ERROR(AsLocal(WriteGraph(path, graph, names)));
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

absl::StatusOr<int> RunConvert(Session& session, const ConvertOptions& options) {
  DPAR_RETURN_IF_ERROR(CheckInput(options));
  DPAR_RETURN_IF_ERROR(CheckOutput(options.output));
  return Conversion(session, options).Run();
}

}  // namespace

void AddConvertCommand(CLI::App& group, Command& chosen) {
  const auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = group.add_subcommand("convert", "Convert between tables, npz, GraphML and sealed graphs");
  command->add_option("FILE", options->input, "Graph file (npz, sealed or graphml); or tables:");
  AddTableFlags(*command, options->tables);
  AddAcceptFlag(*command, options->tables);
  command->add_option("--classes", options->classes,
                      "Number of classes, unless the file states it. It is\npublic, and never counted from the labels");
  command->add_option("-o,--output", options->output, "File to write (.npz, .sealed or .graphml)")->required();
  command->footer(
      Examples("  dpar graph convert --schema people.schema.yaml --nodes customers.csv \\\n"
               "      --edges transfers.csv -o people.npz\n"
               "  dpar graph convert graph.npz -o graph.sealed\n"
               "  dpar graph convert graph.npz -o graph.graphml\n"
               "Ids and class names stay in .npz, and beside .sealed in FILE.sealed.names.npz."));
  command->callback([options, &chosen] { chosen = [options](Session& s) { return RunConvert(s, *options); }; });
}

}  // namespace dpar
