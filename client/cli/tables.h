// Tables on the command line: their flags, reading them with progress, and what to tell their owner.
#ifndef DPAR_CLIENT_CLI_TABLES_H_
#define DPAR_CLIENT_CLI_TABLES_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/progress.h"
#include "client/cli/session.h"
#include "core/table/schema.h"
#include "core/table/table_graph.h"

namespace dpar {

struct TableArguments {
  std::string schema;
  TableFiles files;
  bool accept_observed = false;

  [[nodiscard]] bool given() const { return !schema.empty() || !files.nodes.empty() || !files.edges.empty(); }
};

// --schema, --nodes and --edges.
void AddTableFlags(CLI::App& command, TableArguments& arguments);
// --accept-observed.
void AddAcceptFlag(CLI::App& command, TableArguments& arguments);
// --nodes and --edges alone, where a model has the schema.
void AddTableFileFlags(CLI::App& command, TableArguments& arguments);

// INVALID_FIELD unless all three are files.
absl::Status CheckTableArguments(const TableArguments& arguments);

// Reads the schema. A draft with open questions is refused, unless they are accepted as observed or the data is public.
absl::StatusOr<TableSchema> LoadSchema(const TableArguments& arguments, bool is_public);

// What a TableProgress is told, for a line of progress.
ProgressState TableProgressState(absl::string_view stage, double fraction);

// Reads the tables with progress on stderr, and says there what became 'other' and which edges were left out.
absl::StatusOr<TableGraph> LoadTables(Session& session, const TableSchema& schema, const TableFiles& files);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_TABLES_H_
