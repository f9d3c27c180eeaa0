#include "client/cli/tables.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/progress.h"
#include "client/sdk/input_file.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kPermille = 1000;

void PrintReport(Session& session, const TableReport& report) {
  for (const TableReport::Others& others : report.others) {
    session.err() << "note: " << others.first << "\n";
    if (others.count > 1) {
      session.err() << "      and so do " << FormatCount(others.count - 1) << " more values of " << others.column
                    << "\n";
    }
  }
  if (report.unknown_edges > 0) {
    session.err() << "note: " << report.first_unknown << "\n";
  }
  if (report.unknown_edges > 1) {
    session.err() << "      " << FormatCount(report.unknown_edges) << " edges in all name an id that no node has\n";
  }
}

}  // namespace

void AddTableFileFlags(CLI::App& command, TableArguments& arguments) {
  command.add_option("--nodes", arguments.files.nodes, "Table with a row for each node (csv or tsv, may be gzip)");
  command.add_option("--edges", arguments.files.edges, "Table with a row for each edge");
}

void AddTableFlags(CLI::App& command, TableArguments& arguments) {
  command.add_option("--schema", arguments.schema, "What the columns of tables are (dpar graph schema drafts it)");
  AddTableFileFlags(command, arguments);
}

void AddAcceptFlag(CLI::App& command, TableArguments& arguments) {
  command.add_flag("--accept-observed", arguments.accept_observed,
                   "Take the values that a draft read off the data.\nThey become public, and certificates say so");
}

absl::Status CheckTableArguments(const TableArguments& arguments) {
  if (arguments.schema.empty() || arguments.files.nodes.empty() || arguments.files.edges.empty()) {
    return InvalidField("schema", "tables need --schema, --nodes and --edges");
  }
  DPAR_RETURN_IF_ERROR(CheckInputFile("schema", arguments.schema));
  DPAR_RETURN_IF_ERROR(CheckInputFile("nodes", arguments.files.nodes));
  return CheckInputFile("edges", arguments.files.edges);
}

absl::StatusOr<TableSchema> LoadSchema(const TableArguments& arguments, bool is_public) {
  DPAR_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile("schema", arguments.schema));
  absl::StatusOr<TableSchema> parsed = ParseSchema(text);
  if (!parsed.ok()) {
    return AsLocal(InvalidField("schema", absl::StrCat("'", arguments.schema, "': ", parsed.status().message())));
  }
  TableSchema schema = *std::move(parsed);
  if (arguments.accept_observed) {
    return AcceptObserved(std::move(schema));
  }
  if (!is_public) {
    DPAR_RETURN_IF_ERROR(CheckAnswered(schema));
  }
  return schema;
}

ProgressState TableProgressState(absl::string_view stage, double fraction) {
  ProgressState state;
  state.stage = absl::StrCat("reading ", stage);
  state.total = kPermille;
  state.completed = static_cast<int64_t>(fraction * kPermille);
  return state;
}

absl::StatusOr<TableGraph> LoadTables(Session& session, const TableSchema& schema, const TableFiles& files) {
  ProgressLine line(session.err(), session.terminal());
  absl::StatusOr<TableGraph> tables =
      ReadTableGraph(schema, files, GraphLimits(), [&](absl::string_view stage, double fraction) {
        line.Update(TableProgressState(stage, fraction));
        return !session.calls().cancelled();
      });
  line.Finish();
  DPAR_RETURN_IF_ERROR(AsLocal(tables.status()));
  PrintReport(session, tables->report);
  return tables;
}

}  // namespace dpar
