// A table of nodes and a table of edges as a graph, slots in the order of the rows. Reads the node table twice and the
// edge table once, and takes at most 1.5 times the memory of the result.
#ifndef DPAR_CORE_TABLE_TABLE_GRAPH_H_
#define DPAR_CORE_TABLE_TABLE_GRAPH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph_file.h"
#include "core/graph/graph_names.h"
#include "core/table/schema.h"
#include "core/table/table_reader.h"

namespace dpar {

struct TableFiles {
  std::string nodes;
  std::string edges;  // empty: no edges
};

// What happened to cells and edges. Of private content: for the owner's eyes only.
struct TableReport {
  struct Others {
    std::string column;
    int64_t count = 0;
    std::string first;  // "customers.csv line 7, column country: 'ZZ' is not among its 31 categories; it becomes ..."
  };
  std::vector<Others> others;  // columns that have some
  int64_t unknown_edges = 0;   // edges that name an id which no node has
  std::string first_unknown;   // the first of them
  int64_t null_rows = 0;       // rows without a value and without a label
};

struct TableGraph {
  ImportedGraph imported;
  GraphNames names;
  TableReport report;
};

// `stage` is "nodes", "edges" or "features". Returns whether to go on.
using TableProgress = std::function<bool(absl::string_view stage, double fraction)>;

// The node table may lack the label's column; every node is then unlabelled. Errors name file, line, column and what
// was expected, duplicate ids with both lines; RESOURCE_EXHAUSTED / LIMIT_EXCEEDED beyond a limit; CANCELLED once
// `progress` says no.
absl::StatusOr<TableGraph> ReadTableGraph(const TableSchema& schema, const TableFiles& files, const GraphLimits& limits,
                                          const TableProgress& progress);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_TABLE_GRAPH_H_
