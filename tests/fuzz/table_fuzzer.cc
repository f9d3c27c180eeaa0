// Tables and schemas from strangers. An input is a schema, a node table and an edge table, which byte 0x1e separates;
// an empty schema stands for one that has every type.
//
// For any bytes the result is an error with a message, or a canonical graph whose schema reads as itself.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/table/draft.h"
#include "core/table/schema.h"
#include "core/table/table_graph.h"
#include "tests/fuzz/canonical.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

constexpr const char* kEveryType =
    "nodes:\n  id: i\n  label: {column: l, classes: [a, b]}\n  columns:\n    n: {type: number, range: [0, 9]}\n"
    "    g: {type: number, range: [0, 9], scale: log}\n    c: {type: category, values: [x, y]}\n    f: {type: flag}\n"
    "    d: {type: date, range: [2000-01-01, 2030-01-01]}\n    t: {type: text, width: 8}\n"
    "    v: {type: vector, width: 2}\n    w: {type: vector, columns: [p, q]}\n    o: {type: ignore}\n"
    "edges: {source: s, target: e}\n";

void Judge(const absl::Status& status) {
  Require(status.ok() || !status.message().empty(), "an error says something");
  Require(status.ok() || absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status),
          "an error is the input's fault");
}

void Run(absl::string_view bytes) {
  std::vector<std::string> parts = absl::StrSplit(bytes, absl::MaxSplits('\x1e', 2));
  parts.resize(3);
  const auto schema = ParseSchema(parts[0].empty() ? kEveryType : parts[0]);
  Judge(schema.status());
  const MemoryFile nodes(parts[1]);
  const MemoryFile edges(parts[2]);
  const TableFiles files = {nodes.path(), edges.path()};
  const auto go_on = [](absl::string_view /*stage*/, double fraction) { return fraction >= 0 && fraction <= 1; };
  const auto draft = DraftSchema(files, {}, go_on);
  Judge(draft.status());
  if (draft.ok()) {
    Require(ParseSchema(draft->yaml).ok(), "a draft is a schema");
  }
  if (!schema.ok()) {
    return;
  }
  const std::string canonical = CanonicalSchema(*schema);
  const auto again = ParseSchema(canonical);
  Require(again.ok() && CanonicalSchema(*again) == canonical, "the canonical form reads as itself");
  const auto tables = ReadTableGraph(*schema, files, GraphLimits(), go_on);
  Judge(tables.status());
  if (tables.ok()) {
    RequireCanonical(tables->imported.graph);
    Require(tables->names.ids.size() == tables->imported.graph.sizes.node_count, "every node has its id");
    const auto entries = static_cast<int64_t>(tables->imported.graph.features.columns.size());
    Require(entries <= tables->imported.graph.sizes.node_count * schema->max_entries(), "entries keep their bound");
  }
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
