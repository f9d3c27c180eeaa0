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

// Columns of the node table; empty: guessed.
struct DraftOptions {
  std::string id;
  std::string label;
};

// `yaml` is a schema. Errors are those of TableReader; INVALID_ARGUMENT / INVALID_GRAPH if no column can be the id or
// the label, if none is left to learn from, or if the edge table has no two columns of ids; CANCELLED once `progress`
// says no.
absl::StatusOr<SchemaDraft> DraftSchema(const TableFiles& files, const DraftOptions& options,
                                        const TableProgress& progress);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_DRAFT_H_
