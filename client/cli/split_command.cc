#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/graph_sizes.h"
#include "client/cli/public_draws.h"
#include "client/cli/tables.h"
#include "core/error.h"
#include "core/graph/local_graph.h"
#include "core/graph/split.h"
#include "core/random/random.h"
#include "core/status_macros.h"
#include "core/table/split_tables.h"

namespace dpar {
namespace {

struct SplitOptions {
  std::string input;
  TableArguments tables;
  std::string train;  // a file; with tables, a directory
  std::string test;
  double test_share = 0.2;
  std::optional<int64_t> classes;
  std::optional<uint64_t> seed;
};

absl::Status MakeDirectory(const char* flag, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return std::filesystem::is_directory(path, error)
             ? absl::OkStatus()
             : InvalidField(flag, absl::StrCat("cannot make the directory '", path, "'"));
}

Json PartJson(const TableFiles& files, int64_t rows, int64_t edges) {
  return {{"nodes", files.nodes}, {"edges", files.edges}, {"node_count", rows}, {"edge_count", edges}};
}

// A draft will do: a split reads no value of a column.
absl::StatusOr<int> SplitTableFiles(Session& session, const SplitOptions& options, RandomSource& random) {
  if (!options.input.empty()) {
    return InvalidField("file", "give a graph file or tables, not both");
  }
  DPAR_RETURN_IF_ERROR(CheckTableArguments(options.tables));
  DPAR_ASSIGN_OR_RETURN(const TableSchema schema, LoadSchema(options.tables, /*is_public=*/true));
  DPAR_RETURN_IF_ERROR(CheckSplitOutputs(options.tables.files, options.train, options.test));
  DPAR_RETURN_IF_ERROR(MakeDirectory("train", options.train));
  DPAR_RETURN_IF_ERROR(MakeDirectory("test", options.test));
  const auto split = SplitTables(schema, options.tables.files, options.test_share, random, options.train, options.test);
  DPAR_RETURN_IF_ERROR(AsLocal(split.status()));
  if (session.json()) {
    session.PrintJson({{"train", PartJson(split->train, split->train_rows, split->train_edges)},
                       {"test", PartJson(split->test, split->test_rows, split->test_edges)},
                       {"edges_removed", split->edges_removed}});
    return kDone;
  }
  const auto print = [&session](const TableFiles& files, int64_t rows, int64_t edges) {
    session.out() << "wrote " << files.nodes << ": " << FormatCount(rows) << " rows\n"
                  << "wrote " << files.edges << ": " << FormatCount(edges) << " rows\n";
  };
  print(split->train, split->train_rows, split->train_edges);
  print(split->test, split->test_rows, split->test_edges);
  session.out() << "removed " << FormatCount(split->edges_removed) << (split->edges_removed == 1 ? " edge" : " edges")
                << " between the parts or to unknown ids\n";
  return kDone;
}

absl::StatusOr<int> RunSplit(Session& session, const SplitOptions& options) {
  const std::unique_ptr<RandomSource> random = PublicDraws(options.seed, session.random());
  if (options.tables.given()) {
    return SplitTableFiles(session, options, *random);
  }
  DPAR_RETURN_IF_ERROR(CheckGraphInput("file", options.input));
  DPAR_RETURN_IF_ERROR(CheckGraphOutput("train", options.train));
  DPAR_RETURN_IF_ERROR(CheckGraphOutput("test", options.test));
  if (options.train == options.test) {
    return InvalidField("test", "--train and --test name the same file");
  }
  const auto local = LocalGraph::OpenStated(options.input, options.classes);
  DPAR_RETURN_IF_ERROR(AsLocal(local.status()));
  const auto whole = local->View();
  DPAR_RETURN_IF_ERROR(AsLocal(whole.status()));
  DPAR_ASSIGN_OR_RETURN(const SlotSplit split, SplitSlots(whole->sizes.node_count, options.test_share, *random));
  const Graph test = InducedSubgraph(*whole, split.test);
  const Graph train = InducedSubgraph(*whole, split.train);
  const auto names = ReadLocalNames(options.input, whole->sizes);
  DPAR_RETURN_IF_ERROR(AsLocal(names.status()));
  const auto part_names = [&names](std::span<const int32_t> part) {
    return GraphNames{names->ids.empty() ? NodeIds() : names->ids.Select(part), names->classes, names->schema};
  };
  DPAR_RETURN_IF_ERROR(AsLocal(WriteLocalGraph(options.train, train, part_names(split.train))));
  DPAR_RETURN_IF_ERROR(AsLocal(WriteLocalGraph(options.test, test, part_names(split.test))));
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
                << "removed " << FormatCount(removed) << (removed == 1 ? " edge" : " edges") << " between the parts\n";
  return kDone;
}

}  // namespace

void AddSplitCommand(CLI::App& group, Command& chosen) {
  const auto options = std::make_shared<SplitOptions>();
  CLI::App* command = group.add_subcommand("split", "Split a graph at random; edges between the parts are removed");
  command->add_option("FILE", options->input, "Graph file (npz or sealed); or tables:");
  AddTableFlags(*command, options->tables);
  command->add_option("--train", options->train, "File for the training part (.npz or .sealed); of\ntables a directory")
      ->required();
  command->add_option("--test", options->test, "The same for the test part")->required();
  command->add_option("--test-share", options->test_share, "Share of the nodes in the test part")
      ->capture_default_str();
  command->add_option("--classes", options->classes, "Number of classes, unless the file states it");
  command->add_option("--seed", options->seed, "The same seed gives the same split");
  command->footer(
      Examples("  dpar graph split graph.npz --train train.npz --test test.npz --test-share 0.2\n"
               "  dpar graph split --schema people.schema.yaml --nodes customers.csv \\\n"
               "      --edges transfers.csv --train train --test test"));
  command->callback([options, &chosen] { chosen = [options](Session& s) { return RunSplit(s, *options); }; });
}

}  // namespace dpar
