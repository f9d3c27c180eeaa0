// A first schema for tables, to be finished by their owner. It is made on the owner's machine and reads every row, so
// each figure that it took from the data is marked as a question (schema.h).
#ifndef DPAR_CORE_TABLE_DRAFT_H_
#define DPAR_CORE_TABLE_DRAFT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/table/table_graph.h"

namespace dpar {

struct SchemaDraft {
  std::string yaml;
  std::vector<SchemaQuestion> questions;
};

// Errors are those of TableReader; INVALID_ARGUMENT / INVALID_GRAPH if no column can be the id, or if the edge table
// has no two columns of ids.
absl::StatusOr<SchemaDraft> DraftSchema(const TableFiles& files);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_DRAFT_H_
