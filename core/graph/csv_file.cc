#include "core/graph/csv_file.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/graph/canonical_edges.h"
#include "core/graph/canonical_features.h"
#include "core/graph/csv_lines.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kMaxIndex = std::numeric_limits<int32_t>::max();
constexpr absl::string_view kChanged = "changed while it was read";

// One of the three sizes: known before the files are read, or grown by what they name.
class Extent {
 public:
  Extent(absl::string_view limit_name, int64_t limit) : limit_name_(limit_name), limit_(std::min(limit, kMaxIndex)) {}

  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] bool fixed() const { return fixed_; }

  absl::Status Declare(absl::string_view field, int64_t count) {
    if (count > limit_) {
      return LimitError(limit_name_, limit_);
    }
    DPAR_RETURN_IF_ERROR(ValidateRange(field, count, int64_t{1}, limit_));
    count_ = count;
    Fix();
    return absl::OkStatus();
  }

  // From now on nothing beyond is admitted.
  void Fix() { fixed_ = true; }

  // Takes an index that this line names.
  absl::StatusOr<int32_t> Admit(const CsvLines& lines, int64_t index) {
    if (index < 0 || (fixed_ && index >= count_)) {
      return lines.Refuse("is out of range");
    }
    if (index >= limit_) {
      return LimitError(limit_name_, limit_);
    }
    count_ = std::max(count_, index + 1);
    return static_cast<int32_t>(index);
  }
  absl::StatusOr<int32_t> AdmitField(const CsvLines& lines, size_t field) {
    DPAR_ASSIGN_OR_RETURN(const int64_t index, lines.Integer(field));
    return Admit(lines, index);
  }

 private:
  absl::string_view limit_name_;
  int64_t limit_;
  int64_t count_ = 0;
  bool fixed_ = false;
};

// How many entries each row has, and then where the next entry of each row goes, in the memory of the offsets that come
// out in the end. While it counts, the rows grow with the largest one named: at most twice their memory, at a time when
// no entry is held.
class RowFiller {
 public:
  // offsets[row + 1] counts the row.
  void Count(int32_t row) {
    const auto needed = static_cast<size_t>(row) + 2;
    if (offsets_.size() < needed) {
      offsets_.resize(needed, 0);
    }
    ++offsets_[static_cast<size_t>(row) + 1];
    ++entries_;
  }
  [[nodiscard]] int64_t entries() const { return entries_; }

  // offsets[row] is the start of the row.
  void StartFilling(int64_t rows) {
    offsets_.resize(static_cast<size_t>(rows) + 1, 0);
    for (size_t row = 1; row < offsets_.size(); ++row) {
      offsets_[row] += offsets_[row - 1];
    }
  }

  // Where this entry of the row goes; nothing when the row has more than were counted, as far as that can be seen.
  std::optional<size_t> Place(int32_t row) {
    const int64_t place = offsets_[static_cast<size_t>(row)]++;
    return place < entries_ ? std::optional(static_cast<size_t>(place)) : std::nullopt;
  }

  // offsets[row] became the end of the row, which is the start of the next. Nothing unless these are offsets, which
  // they are when what was filled is what was counted.
  std::optional<std::vector<int64_t>> Finish() {
    std::move_backward(offsets_.begin(), offsets_.end() - 1, offsets_.end());
    offsets_.front() = 0;
    if (offsets_.back() != entries_ || !std::is_sorted(offsets_.begin(), offsets_.end())) {
      return std::nullopt;
    }
    return std::move(offsets_);
  }

 private:
  std::vector<int64_t> offsets_ = {0};
  int64_t entries_ = 0;
};

// Calls visit() for every line of data.
template <typename Visit>
absl::Status ForEachLine(CsvLines& lines, const Visit& visit) {
  bool any = false;
  for (;;) {
    DPAR_ASSIGN_OR_RETURN(const bool more, lines.Next());
    if (!more) {
      return any ? absl::OkStatus() : lines.RefuseFile("holds no line of data");
    }
    any = true;
    DPAR_RETURN_IF_ERROR(visit());
  }
}

class Reader {
 public:
  explicit Reader(const GraphLimits& limits)
      : limits_(limits),
        nodes_("max_nodes", limits.max_nodes),
        columns_("max_features", limits.max_features),
        classes_("max_classes", limits.max_classes) {}

  absl::StatusOr<ImportedGraph> Read(const CsvGraphFiles& files, const std::optional<PublicSizes>& declared);

 private:
  struct Edge {
    int32_t source = 0;
    int32_t target = 0;
  };
  struct Feature {
    int32_t node = 0;
    int32_t column = 0;
    float value = 0;
  };

  absl::StatusOr<Edge> ReadEdge(const CsvLines& lines);
  absl::StatusOr<Feature> ReadFeature(const CsvLines& lines);

  absl::Status CountEdges(CsvLines& lines);
  absl::Status FillEdges(CsvLines& lines);
  absl::Status CountSparse(CsvLines& lines);
  absl::Status FillSparse(CsvLines& lines);
  absl::Status CountDense(CsvLines& lines);
  absl::Status FillDense(CsvLines& lines);
  // The error for the line that repeats a feature.
  absl::Status RefuseRepeated(CsvLines& lines, const RepeatedFeature& repeated);
  absl::Status ReadLabels(CsvLines& lines);
  absl::Status SetLabel(const CsvLines& lines, int32_t node, size_t field);

  const GraphLimits& limits_;
  Extent nodes_;
  Extent columns_;
  Extent classes_;
  RowFiller edge_rows_;
  RowFiller feature_rows_;    // of sparse features
  size_t dense_entries_ = 0;  // of dense features, other than 0
  ImportedGraph result_;
};

absl::StatusOr<Reader::Edge> Reader::ReadEdge(const CsvLines& lines) {
  DPAR_RETURN_IF_ERROR(lines.CheckFieldCount(2));
  Edge edge;
  DPAR_ASSIGN_OR_RETURN(edge.source, nodes_.AdmitField(lines, 0));
  DPAR_ASSIGN_OR_RETURN(edge.target, nodes_.AdmitField(lines, 1));
  return edge;
}

absl::Status Reader::CountEdges(CsvLines& lines) {
  return ForEachLine(lines, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Edge edge, ReadEdge(lines));
    if (edge_rows_.entries() == limits_.max_edges) {
      return LimitError("max_edges", limits_.max_edges);
    }
    edge_rows_.Count(edge.source);
    return absl::OkStatus();
  });
}

absl::Status Reader::FillEdges(CsvLines& lines) {
  edge_rows_.StartFilling(nodes_.count());
  std::vector<int32_t>& neighbours = result_.graph.neighbours;
  // Every edge may stand in one direction only. Room for the other costs address space alone until it is used.
  neighbours.reserve(2 * static_cast<size_t>(edge_rows_.entries()));
  neighbours.resize(static_cast<size_t>(edge_rows_.entries()));
  DPAR_RETURN_IF_ERROR(lines.Rewind());
  DPAR_RETURN_IF_ERROR(ForEachLine(lines, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Edge edge, ReadEdge(lines));
    const std::optional<size_t> place = edge_rows_.Place(edge.source);
    if (!place.has_value()) {
      return lines.RefuseFile(kChanged);
    }
    neighbours[*place] = edge.target;
    return absl::OkStatus();
  }));
  std::optional<std::vector<int64_t>> offsets = edge_rows_.Finish();
  if (!offsets.has_value()) {
    return lines.RefuseFile(kChanged);
  }
  result_.graph.edge_offsets = *std::move(offsets);
  const EdgeChanges changes = CanonicaliseEdges(result_.graph.edge_offsets, neighbours);
  result_.report.edge_count = result_.graph.edge_count();
  result_.report.edges_symmetrised = changes.edges_symmetrised;
  result_.report.duplicates_merged = changes.duplicates_merged;
  result_.report.self_loops_dropped = changes.self_loops_dropped;
  return absl::OkStatus();
}

absl::StatusOr<Reader::Feature> Reader::ReadFeature(const CsvLines& lines) {
  DPAR_RETURN_IF_ERROR(lines.CheckFieldCount(3));
  Feature feature;
  DPAR_ASSIGN_OR_RETURN(feature.node, nodes_.AdmitField(lines, 0));
  DPAR_ASSIGN_OR_RETURN(feature.column, columns_.AdmitField(lines, 1));
  DPAR_ASSIGN_OR_RETURN(feature.value, lines.Number(2));
  return feature;
}

absl::Status Reader::CountSparse(CsvLines& lines) {
  return ForEachLine(lines, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Feature feature, ReadFeature(lines));
    if (feature_rows_.entries() == limits_.max_feature_entries) {
      return LimitError("max_feature_entries", limits_.max_feature_entries);
    }
    feature_rows_.Count(feature.node);
    return absl::OkStatus();
  });
}

absl::Status Reader::FillSparse(CsvLines& lines) {
  feature_rows_.StartFilling(nodes_.count());
  SparseRows& rows = result_.graph.features;
  rows.columns.resize(static_cast<size_t>(feature_rows_.entries()));
  rows.values.resize(static_cast<size_t>(feature_rows_.entries()));
  DPAR_RETURN_IF_ERROR(lines.Rewind());
  DPAR_RETURN_IF_ERROR(ForEachLine(lines, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Feature feature, ReadFeature(lines));
    const std::optional<size_t> place = feature_rows_.Place(feature.node);
    if (!place.has_value()) {
      return lines.RefuseFile(kChanged);
    }
    rows.columns[*place] = feature.column;
    rows.values[*place] = feature.value;
    return absl::OkStatus();
  }));
  std::optional<std::vector<int64_t>> offsets = feature_rows_.Finish();
  if (!offsets.has_value()) {
    return lines.RefuseFile(kChanged);
  }
  rows.offsets = *std::move(offsets);
  const auto repeated = CanonicaliseFeatures(rows, result_.report.zero_features_dropped);
  return repeated.has_value() ? RefuseRepeated(lines, *repeated) : absl::OkStatus();
}

absl::Status Reader::RefuseRepeated(CsvLines& lines, const RepeatedFeature& repeated) {
  bool found = false;
  DPAR_RETURN_IF_ERROR(lines.Rewind());
  DPAR_RETURN_IF_ERROR(ForEachLine(lines, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Feature feature, ReadFeature(lines));
    if (feature.node != repeated.row || feature.column != repeated.column) {
      return absl::OkStatus();
    }
    return std::exchange(found, true) ? lines.Refuse("names a column that its node has already") : absl::OkStatus();
  }));
  return lines.RefuseFile(kChanged);
}

absl::Status Reader::CountDense(CsvLines& lines) {
  int64_t rows = 0;
  DPAR_RETURN_IF_ERROR(ForEachLine(lines, [&]() -> absl::Status {
    if (!columns_.fixed()) {
      DPAR_RETURN_IF_ERROR(columns_.Admit(lines, static_cast<int64_t>(lines.fields().size()) - 1).status());
      columns_.Fix();
    }
    DPAR_RETURN_IF_ERROR(lines.CheckFieldCount(columns_.count()));
    if (lines.blank_lines() > 0) {
      return lines.Refuse("follows an empty line, where the numbers of a node should be");
    }
    DPAR_RETURN_IF_ERROR(nodes_.Admit(lines, rows).status());
    ++rows;
    if (columns_.count() > limits_.max_feature_entries / rows) {
      return LimitError("max_feature_entries", limits_.max_feature_entries);
    }
    for (size_t field = 0; field < lines.fields().size(); ++field) {
      DPAR_ASSIGN_OR_RETURN(const float value, lines.Number(field));
      dense_entries_ += value != 0 ? 1 : 0;
    }
    return absl::OkStatus();
  }));
  if (rows != nodes_.count()) {
    return lines.RefuseFile("has fewer lines than the declared number of nodes");
  }
  nodes_.Fix();
  return absl::OkStatus();
}

absl::Status Reader::FillDense(CsvLines& lines) {
  SparseRows& rows = result_.graph.features;
  rows.offsets.reserve(static_cast<size_t>(nodes_.count()) + 1);
  rows.columns.reserve(dense_entries_);
  rows.values.reserve(dense_entries_);
  DPAR_RETURN_IF_ERROR(lines.Rewind());
  DPAR_RETURN_IF_ERROR(ForEachLine(lines, [&]() -> absl::Status {
    DPAR_RETURN_IF_ERROR(lines.CheckFieldCount(columns_.count()));
    for (size_t field = 0; field < lines.fields().size(); ++field) {
      DPAR_ASSIGN_OR_RETURN(const float value, lines.Number(field));
      if (value != 0) {
        rows.columns.push_back(static_cast<int32_t>(field));
        rows.values.push_back(value);
      }
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
    return absl::OkStatus();
  }));
  const bool as_counted = static_cast<int64_t>(rows.offsets.size()) == nodes_.count() + 1;
  return as_counted ? absl::OkStatus() : lines.RefuseFile(kChanged);
}

absl::Status Reader::SetLabel(const CsvLines& lines, int32_t node, size_t field) {
  std::vector<int32_t>& labels = result_.graph.labels;
  if (labels.size() <= static_cast<size_t>(node)) {
    labels.resize(static_cast<size_t>(node) + 1, kUnlabelled);
  }
  if (lines.fields()[field].empty()) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const int64_t number, lines.Integer(field));
  if (number == kUnlabelled) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const int32_t label, classes_.Admit(lines, number));
  int32_t& place = labels[static_cast<size_t>(node)];
  if (place != kUnlabelled) {
    return lines.Refuse("names a node that has a label already");
  }
  place = label;
  return absl::OkStatus();
}

absl::Status Reader::ReadLabels(CsvLines& lines) {
  result_.graph.labels.reserve(static_cast<size_t>(nodes_.count()));
  int64_t field_count = 0;  // 1 or 2, from the first line
  int64_t next_node = 0;    // where labels stand alone
  DPAR_RETURN_IF_ERROR(ForEachLine(lines, [&]() -> absl::Status {
    if (field_count == 0) {
      field_count = lines.fields().size() == 1 ? 1 : 2;
    }
    DPAR_RETURN_IF_ERROR(lines.CheckFieldCount(field_count));
    if (field_count == 2) {
      DPAR_ASSIGN_OR_RETURN(const int32_t node, nodes_.AdmitField(lines, 0));
      return SetLabel(lines, node, 1);
    }
    next_node += lines.blank_lines();
    DPAR_ASSIGN_OR_RETURN(const int32_t node, nodes_.Admit(lines, next_node++));
    return SetLabel(lines, node, 0);
  }));
  if (classes_.count() == 0) {
    return lines.RefuseFile("has no label; state the number of classes");
  }
  result_.graph.labels.resize(static_cast<size_t>(nodes_.count()), kUnlabelled);
  return absl::OkStatus();
}

absl::StatusOr<ImportedGraph> Reader::Read(const CsvGraphFiles& files, const std::optional<PublicSizes>& declared) {
  if (declared.has_value()) {
    DPAR_RETURN_IF_ERROR(nodes_.Declare("node_count", declared->node_count));
    DPAR_RETURN_IF_ERROR(columns_.Declare("feature_count", declared->feature_count));
    DPAR_RETURN_IF_ERROR(classes_.Declare("class_count", declared->class_count));
  }
  const bool dense = files.feature_form == CsvGraphFiles::FeatureForm::kDense;
  DPAR_ASSIGN_OR_RETURN(CsvLines edges, CsvLines::Open(files.edges, "edges", 2));
  DPAR_ASSIGN_OR_RETURN(CsvLines features,
                        CsvLines::Open(files.features, "features", dense ? limits_.max_features : 3));
  DPAR_ASSIGN_OR_RETURN(CsvLines labels, CsvLines::Open(files.labels, "labels", 2));
  if (dense) {
    features.ForbidHeader();
  }
  // Dense features come first: they say how many nodes there are.
  DPAR_RETURN_IF_ERROR(dense ? CountDense(features) : CountSparse(features));
  DPAR_RETURN_IF_ERROR(CountEdges(edges));
  DPAR_RETURN_IF_ERROR(ReadLabels(labels));
  nodes_.Fix();
  columns_.Fix();
  result_.graph.sizes = {nodes_.count(), columns_.count(), classes_.count()};
  result_.classes_counted = !declared.has_value();
  const std::vector<int32_t>& all_labels = result_.graph.labels;
  result_.report.unlabelled_nodes = std::count(all_labels.begin(), all_labels.end(), kUnlabelled);
  DPAR_RETURN_IF_ERROR(dense ? FillDense(features) : FillSparse(features));
  DPAR_RETURN_IF_ERROR(FillEdges(edges));
  return std::move(result_);
}

}  // namespace

absl::StatusOr<ImportedGraph> ReadCsvGraph(const CsvGraphFiles& files, const GraphLimits& limits,
                                           const std::optional<PublicSizes>& declared) {
  return Reader(limits).Read(files, declared);
}

}  // namespace dpar
