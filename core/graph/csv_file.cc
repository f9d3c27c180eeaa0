#include "core/graph/csv_file.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/graph/canonical_features.h"
#include "core/graph/csv_lines.h"
#include "core/graph/edge_list.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kMaxIndex = std::numeric_limits<int32_t>::max();

// One of the three sizes: declared, or grown by the lines and columns of dense features.
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

  void Fix() { fixed_ = true; }

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

template <typename Visit>
absl::Status ForEachLine(CsvLines& lines, const Visit& visit) {
  for (;;) {
    DPAR_ASSIGN_OR_RETURN(const bool more, lines.Next());
    if (!more) {
      return absl::OkStatus();
    }
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

  absl::StatusOr<ImportedGraph> Read(const CsvGraphFiles& files, const PublicSizes& declared);

 private:
  struct Feature {
    int32_t row = 0;
    int32_t column = 0;
    float value = 0;
  };

  absl::StatusOr<Feature> ReadFeature(const CsvLines& lines);
  absl::Status ReadEdges(CsvLines& lines);
  absl::Status ReadSparse(CsvLines& lines);
  absl::Status FillSparse(const std::string& path);
  absl::Status ReadDense(CsvLines& lines);
  absl::Status ReadLabels(CsvLines& lines);
  absl::Status SetLabel(const CsvLines& lines, int32_t node, size_t field);

  const GraphLimits& limits_;
  Extent nodes_;
  Extent columns_;
  Extent classes_;
  std::vector<Edge> edges_;
  std::vector<Feature> features_;  // where they are sparse
  ImportedGraph result_;
};

absl::Status Reader::ReadEdges(CsvLines& lines) {
  return ForEachLine(lines, [&]() -> absl::Status {
    DPAR_RETURN_IF_ERROR(lines.CheckFieldCount(2));
    if (static_cast<int64_t>(edges_.size()) == limits_.max_edges) {
      return LimitError("max_edges", limits_.max_edges);
    }
    Edge& edge = edges_.emplace_back();
    DPAR_ASSIGN_OR_RETURN(edge.row, nodes_.AdmitField(lines, 0));
    DPAR_ASSIGN_OR_RETURN(edge.column, nodes_.AdmitField(lines, 1));
    return absl::OkStatus();
  });
}

absl::StatusOr<Reader::Feature> Reader::ReadFeature(const CsvLines& lines) {
  DPAR_RETURN_IF_ERROR(lines.CheckFieldCount(3));
  Feature feature;
  DPAR_ASSIGN_OR_RETURN(feature.row, nodes_.AdmitField(lines, 0));
  DPAR_ASSIGN_OR_RETURN(feature.column, columns_.AdmitField(lines, 1));
  DPAR_ASSIGN_OR_RETURN(feature.value, lines.Number(2));
  return feature;
}

absl::Status Reader::ReadSparse(CsvLines& lines) {
  return ForEachLine(lines, [&]() -> absl::Status {
    if (static_cast<int64_t>(features_.size()) == limits_.max_feature_entries) {
      return LimitError("max_feature_entries", limits_.max_feature_entries);
    }
    DPAR_ASSIGN_OR_RETURN(features_.emplace_back(), ReadFeature(lines));
    return absl::OkStatus();
  });
}

absl::Status Reader::FillSparse(const std::string& path) {
  SparseRows& rows = result_.graph.features;
  rows.columns.resize(features_.size());
  rows.values.resize(features_.size());
  rows.offsets = FillRows(nodes_.count(), features_, [&rows](size_t position, const Feature& feature) {
    rows.columns[position] = feature.column;
    rows.values[position] = feature.value;
  });
  const auto repeated = CanonicaliseFeatures(rows, result_.report.zero_features_dropped);
  if (!repeated.has_value()) {
    return absl::OkStatus();
  }
  // Find the line that the error names.
  DPAR_ASSIGN_OR_RETURN(CsvLines lines, CsvLines::Open(path, "features", 3));
  bool found = false;
  DPAR_RETURN_IF_ERROR(ForEachLine(lines, [&]() -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Feature feature, ReadFeature(lines));
    if (feature.row != repeated->row || feature.column != repeated->column) {
      return absl::OkStatus();
    }
    return std::exchange(found, true) ? lines.Refuse("names a column that its node has already") : absl::OkStatus();
  }));
  return lines.RefuseFile("changed while it was read");
}

absl::Status Reader::ReadDense(CsvLines& lines) {
  SparseRows& features = result_.graph.features;
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
      if (value != 0) {
        features.columns.push_back(static_cast<int32_t>(field));
        features.values.push_back(value);
      }
    }
    features.offsets.push_back(static_cast<int64_t>(features.columns.size()));
    return absl::OkStatus();
  }));
  if (rows == 0) {
    return lines.RefuseFile("holds no line of data");
  }
  if (rows != nodes_.count()) {
    return lines.RefuseFile("has fewer lines than the declared number of nodes");
  }
  nodes_.Fix();
  return absl::OkStatus();
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
  result_.graph.labels.resize(static_cast<size_t>(nodes_.count()), kUnlabelled);
  return absl::OkStatus();
}

absl::StatusOr<ImportedGraph> Reader::Read(const CsvGraphFiles& files, const PublicSizes& declared) {
  const bool dense = files.feature_form == CsvGraphFiles::FeatureForm::kDense;
  if (!dense || declared.node_count != 0) {
    DPAR_RETURN_IF_ERROR(nodes_.Declare("node_count", declared.node_count));
  }
  if (!dense || declared.feature_count != 0) {
    DPAR_RETURN_IF_ERROR(columns_.Declare("feature_count", declared.feature_count));
  }
  DPAR_RETURN_IF_ERROR(classes_.Declare("class_count", declared.class_count));
  DPAR_ASSIGN_OR_RETURN(CsvLines edges, CsvLines::Open(files.edges, "edges", 2));
  DPAR_ASSIGN_OR_RETURN(CsvLines features,
                        CsvLines::Open(files.features, "features", dense ? limits_.max_features : 3));
  DPAR_ASSIGN_OR_RETURN(CsvLines labels, CsvLines::Open(files.labels, "labels", 2));
  if (dense) {
    features.ForbidHeader();
  }
  // Dense features come first: they say how many nodes there are.
  DPAR_RETURN_IF_ERROR(dense ? ReadDense(features) : ReadSparse(features));
  DPAR_RETURN_IF_ERROR(ReadEdges(edges));
  DPAR_RETURN_IF_ERROR(ReadLabels(labels));
  result_.graph.sizes = {nodes_.count(), columns_.count(), classes_.count()};
  if (!dense) {
    DPAR_RETURN_IF_ERROR(FillSparse(files.features));
  }
  FillEdges(edges_, result_);
  return std::move(result_);
}

}  // namespace

absl::StatusOr<ImportedGraph> ReadCsvGraph(const CsvGraphFiles& files, const GraphLimits& limits,
                                           const PublicSizes& declared) {
  return Reader(limits).Read(files, declared);
}

}  // namespace dpar
