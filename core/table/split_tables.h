#ifndef DPAR_CORE_TABLE_SPLIT_TABLES_H_
#define DPAR_CORE_TABLE_SPLIT_TABLES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/random/random.h"
#include "core/table/table_graph.h"

namespace dpar {

struct TableSplit {
  TableFiles train;
  TableFiles test;
  int64_t train_rows = 0;
  int64_t test_rows = 0;
  int64_t train_edges = 0;
  int64_t test_edges = 0;
  int64_t edges_removed = 0;  // between the parts, or with an unknown id
};

// INVALID_FIELD if a part would be written over a table or over another part, or beside a table. Writes nothing.
absl::Status CheckSplitOutputs(const TableFiles& files, const std::string& train_directory,
                               const std::string& test_directory);

// Writes a random part of the node table's rows, as they stand, to each directory, which must exist, with the edges
// among them. Files keep their names, without .gz, and pass CheckSplitOutputs. The split reads row numbers alone, as
// SplitSlots.
absl::StatusOr<TableSplit> SplitTables(const TableSchema& schema, const TableFiles& files, double test_share,
                                       RandomSource& random, const std::string& train_directory,
                                       const std::string& test_directory);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_SPLIT_TABLES_H_
