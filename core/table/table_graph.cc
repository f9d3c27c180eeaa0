#include "core/table/table_graph.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/graph/edge_list.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"
#include "core/table/id_index.h"
#include "core/table/row_encoder.h"
#include "core/table/table_meter.h"

namespace dpar {
namespace {

absl::StatusOr<size_t> NeedColumn(const TableReader& table, absl::string_view name, absl::string_view what) {
  const std::optional<size_t> found = table.FindColumn(name);
  return found.has_value() ? absl::StatusOr<size_t>(*found)
                           : table.RefuseColumn(name, absl::StrCat("the schema names it as ", what,
                                                                   ", and the table does not have it"));
}

class Assembly {
 public:
  Assembly(const TableSchema& schema, const TableFiles& files, const GraphLimits& limits, const TableProgress& progress)
      : schema_(schema), files_(files), limits_(limits), progress_(progress) {
    for (size_t i = 0; i < schema.classes.size(); ++i) {
      classes_.emplace(schema.classes[i], static_cast<int32_t>(i));
    }
  }

  // Edges become canonical before the features are in memory, so that their lists stand beside nothing large.
  absl::StatusOr<TableGraph> Run() {
    DPAR_RETURN_IF_ERROR(ReadNodes());
    std::vector<Edge> edges;
    if (!files_.edges.empty()) {
      DPAR_ASSIGN_OR_RETURN(edges, ReadEdges());
    }
    result_.names.ids = ids_.Release();
    FillEdges(edges, result_.imported);
    edges = {};
    DPAR_RETURN_IF_ERROR(ReadFeatures());
    result_.names.classes = schema_.classes;
    result_.names.schema = CanonicalSchema(schema_);
    return std::move(result_);
  }

 private:
  Graph& graph() { return result_.imported.graph; }

  // Ids, labels and the lengths of the feature rows.
  absl::Status ReadNodes() {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.nodes));
    DPAR_ASSIGN_OR_RETURN(RowEncoder encoder, RowEncoder::Make(schema_, table));
    DPAR_ASSIGN_OR_RETURN(const size_t id, NeedColumn(table, schema_.id, "the id"));
    const std::optional<size_t> label = table.FindColumn(schema_.label);
    TableMeter meter(progress_, "nodes");
    RowEncoder::Row row;
    int64_t entries = 0;
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      if (!found) {
        break;
      }
      DPAR_RETURN_IF_ERROR(meter.Count(table));
      DPAR_RETURN_IF_ERROR(AddId(table, id));
      DPAR_RETURN_IF_ERROR(AddLabel(table, label));
      DPAR_RETURN_IF_ERROR(encoder.Encode(table, row));
      entries += static_cast<int64_t>(row.columns.size());
      if (entries > limits_.max_feature_entries) {
        return LimitError("max_feature_entries", limits_.max_feature_entries);
      }
      result_.report.null_rows += row.columns.empty() && graph().labels.back() == kUnlabelled ? 1 : 0;
      Note(table, encoder, row);
    }
    graph().sizes = {ids_.size(), schema_.feature_count(), static_cast<int64_t>(schema_.classes.size())};
    entries_ = static_cast<size_t>(entries);
    DPAR_RETURN_IF_ERROR(meter.Finish());
    return ids_.size() > 0 ? absl::OkStatus() : table.Refuse("the table has a header and no row");
  }

  absl::Status AddId(const TableReader& table, size_t field) {
    const absl::string_view id = table.fields()[field];
    if (id.empty() || id.size() > kMaxNodeIdBytes) {
      return table.RefuseColumn(schema_.id, absl::StrCat("expected an id of 1 to ", kMaxNodeIdBytes, " bytes"));
    }
    if (ids_.size() >= limits_.max_nodes) {
      return LimitError("max_nodes", limits_.max_nodes);
    }
    return ids_.Add(id).has_value() ? absl::OkStatus() : Duplicate(table, id);
  }

  // Lines are not kept: a table that is refused may be read again.
  absl::Status Duplicate(const TableReader& table, absl::string_view id) {
    const int32_t first = *ids_.Find(id);
    DPAR_ASSIGN_OR_RETURN(TableReader again, TableReader::Open(files_.nodes));
    for (int32_t row = 0; row <= first; ++row) {
      DPAR_RETURN_IF_ERROR(again.Next().status());
    }
    return table.RefuseColumn(schema_.id, absl::StrCat("the id ", ShownCell(id), " stands in line ", again.line(),
                                                       " already; a node is one row, and its id is its own"));
  }

  absl::Status AddLabel(const TableReader& table, std::optional<size_t> field) {
    const absl::string_view name = field.has_value() ? table.fields()[*field] : absl::string_view();
    const auto found = classes_.find(name);
    if (found == classes_.end() && !IsMissing(name)) {
      return table.RefuseColumn(schema_.label,
                                absl::StrCat(ShownCell(name), " is not among its ", schema_.classes.size(),
                                             " classes; leave it empty if the class is not known"));
    }
    graph().labels.push_back(found == classes_.end() ? kUnlabelled : found->second);
    return absl::OkStatus();
  }

  void Note(const TableReader& table, const RowEncoder& encoder, const RowEncoder::Row& row) {
    for (const size_t index : row.others) {
      const ColumnSchema& column = encoder.column(index);
      TableReport::Others& others = others_[index];
      if (others.count++ == 0) {
        others.column = column.name;
        others.first = std::string(
            table
                .RefuseColumn(column.name, absl::StrCat(ShownCell(table.fields()[*table.FindColumn(column.name)]), " ",
                                                        Reason(column), "; it becomes 'other'"))
                .message());
      }
    }
  }

  static std::string Reason(const ColumnSchema& column) {
    switch (column.type) {
      case ColumnType::kCategory:
        return absl::StrCat("is not among its ", column.values.size(), " categories");
      case ColumnType::kFlag:
        return "is neither yes nor no";
      case ColumnType::kDate:
        return absl::StrCat("is not from ", FormatDate(column.low), " to ", FormatDate(column.high));
      case ColumnType::kNumber:
        return absl::StrCat("is not from ", column.low, " to ", column.high);
      default:
        return "holds no word";
    }
  }

  absl::StatusOr<std::vector<Edge>> ReadEdges() {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.edges));
    DPAR_ASSIGN_OR_RETURN(const size_t source, NeedColumn(table, schema_.source, "an edge's source"));
    DPAR_ASSIGN_OR_RETURN(const size_t target, NeedColumn(table, schema_.target, "an edge's target"));
    TableMeter meter(progress_, "edges");
    std::vector<Edge> edges;
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      if (!found) {
        DPAR_RETURN_IF_ERROR(meter.Finish());
        return edges;
      }
      DPAR_RETURN_IF_ERROR(meter.Count(table));
      const std::optional<int32_t> from = ids_.Find(table.fields()[source]);
      const std::optional<int32_t> to = ids_.Find(table.fields()[target]);
      if (from.has_value() && to.has_value()) {
        edges.push_back({*from, *to});
      } else if (++result_.report.unknown_edges == 1) {
        const size_t unknown = from.has_value() ? target : source;
        result_.report.first_unknown =
            std::string(table
                            .RefuseColumn(table.header()[unknown],
                                          absl::StrCat("no node has the id ", ShownCell(table.fields()[unknown]),
                                                       "; the edge is left out"))
                            .message());
      }
      if (static_cast<int64_t>(edges.size()) > limits_.max_edges) {
        return LimitError("max_edges", limits_.max_edges);
      }
    }
  }

  absl::Status ReadFeatures() {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.nodes));
    DPAR_ASSIGN_OR_RETURN(RowEncoder encoder, RowEncoder::Make(schema_, table));
    SparseRows& features = graph().features;
    const auto rows = static_cast<size_t>(graph().sizes.node_count);
    features.offsets.reserve(rows + 1);
    features.columns.reserve(entries_);
    features.values.reserve(entries_);
    TableMeter meter(progress_, "features");
    RowEncoder::Row row;
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      const bool whole = features.offsets.size() == rows + 1;
      if (!found && whole && features.columns.size() == entries_) {
        break;
      }
      if (!found || whole || features.columns.size() > entries_) {
        return table.Refuse("the file changed while it was read");
      }
      DPAR_RETURN_IF_ERROR(meter.Count(table));
      DPAR_RETURN_IF_ERROR(encoder.Encode(table, row));
      features.columns.insert(features.columns.end(), row.columns.begin(), row.columns.end());
      features.values.insert(features.values.end(), row.values.begin(), row.values.end());
      features.offsets.push_back(static_cast<int64_t>(features.columns.size()));
    }
    for (auto& [index, others] : others_) {
      result_.report.others.push_back(std::move(others));
    }
    return meter.Finish();
  }

  const TableSchema& schema_;
  const TableFiles& files_;
  const GraphLimits& limits_;
  const TableProgress& progress_;
  absl::flat_hash_map<absl::string_view, int32_t> classes_;
  IdIndex ids_;
  size_t entries_ = 0;
  std::map<size_t, TableReport::Others> others_;
  TableGraph result_;
};

}  // namespace

absl::StatusOr<TableGraph> ReadTableGraph(const TableSchema& schema, const TableFiles& files, const GraphLimits& limits,
                                          const TableProgress& progress) {
  return Assembly(schema, files, limits, progress).Run();
}

}  // namespace dpar
