#include "core/graph/graph_file.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/graph/canonical_edges.h"
#include "core/graph/canonical_features.h"
#include "core/graph/graph_error.h"
#include "core/graph/graph_layout.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr char kLabels[] = "labels";
constexpr char kNumClasses[] = "num_classes";

absl::StatusOr<std::vector<int64_t>> ReadInt64(NpzFile& file, const std::string& name, int64_t count) {
  std::vector<int64_t> result;
  result.reserve(static_cast<size_t>(count));
  DPAR_RETURN_IF_ERROR(ReadIntegers(file, name, [&](int64_t /*position*/, const auto& entries) {
    result.insert(result.end(), entries.begin(), entries.end());
    return absl::OkStatus();
  }));
  return result;
}

absl::Status CheckOffsets(const std::string& name, const std::vector<int64_t>& offsets, int64_t entries) {
  if (offsets.front() != 0) {
    return GraphErrorAt(name, 0, "is not 0");
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      return GraphErrorAt(name, static_cast<int64_t>(i), "is below the entry before it");
    }
  }
  if (offsets.back() != entries) {
    return GraphErrorAt(name, static_cast<int64_t>(offsets.size()) - 1, "is not the number of stored entries");
  }
  return absl::OkStatus();
}

struct IndexRows {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
};

struct MatrixBounds {
  int64_t rows = 0;
  int64_t columns = 0;
  absl::string_view limit_name;
  int64_t max_entries = 0;
};

// Compares all three lengths and applies the limit before it reads an entry. Reserves `room` times the entries.
absl::StatusOr<IndexRows> ReadIndices(NpzFile& file, const SparseNames& names, const MatrixBounds& bounds,
                                      size_t room) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> indices_shape, file.ReadShape(names.indices));
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> data_shape, file.ReadShape(names.data));
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> indptr_shape, file.ReadShape(names.indptr));
  if (indices_shape.size() != 1) {
    return GraphError(names.indices, "must have one dimension");
  }
  if (data_shape != indices_shape) {
    return GraphError(names.data, absl::StrCat("must have the shape of ", names.indices));
  }
  if (indptr_shape != std::vector<int64_t>{bounds.rows + 1}) {
    return GraphError(names.indptr, absl::StrCat("must have one entry more than ", names.shape, " has rows"));
  }
  if (indices_shape[0] > bounds.max_entries) {
    return LimitError(bounds.limit_name, bounds.max_entries);
  }
  IndexRows result;
  DPAR_ASSIGN_OR_RETURN(result.offsets, ReadInt64(file, names.indptr, indptr_shape[0]));
  DPAR_RETURN_IF_ERROR(CheckOffsets(names.indptr, result.offsets, indices_shape[0]));
  result.columns.reserve(room * static_cast<size_t>(indices_shape[0]));
  DPAR_RETURN_IF_ERROR(ReadInt32(file, names.indices, 0, bounds.columns - 1, result.columns));
  return result;
}

// Refuses weights that say more than that there is an edge.
absl::Status CheckWeights(NpzFile& file, const std::string& name) {
  std::variant<int64_t, double> first;
  return ReadNumbers(file, name, [&](int64_t position, const auto& weights) -> absl::Status {
    using Weight = typename std::decay_t<decltype(weights)>::value_type;
    using Wide = std::conditional_t<std::is_integral_v<Weight>, int64_t, double>;
    if (position == 0 && !weights.empty()) {
      first = static_cast<Wide>(weights[0]);
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      const auto weight = static_cast<double>(weights[i]);
      if (!std::isfinite(weight) || weight == 0) {
        return GraphErrorAt(name, position + static_cast<int64_t>(i), "is not a finite weight other than 0");
      }
      if (static_cast<Wide>(weights[i]) != std::get<Wide>(first)) {
        return GraphErrorAt(name, position + static_cast<int64_t>(i),
                            "differs from the first weight; weighted edges are not supported");
      }
    }
    return absl::OkStatus();
  });
}

absl::Status ReadEdges(NpzFile& file, const GraphLayout& layout, const GraphLimits& limits, ImportedGraph& result) {
  // An edge may stand in one direction only. Space for the other costs address space alone until it is used.
  constexpr size_t kRoomForBothDirections = 2;
  const SparseNames& names = layout.adjacency;
  const MatrixBounds bounds = {layout.node_count, layout.node_count, "max_edges", limits.max_edges};
  DPAR_ASSIGN_OR_RETURN(IndexRows edges, ReadIndices(file, names, bounds, kRoomForBothDirections));
  DPAR_RETURN_IF_ERROR(CheckWeights(file, names.data));
  result.graph.edge_offsets = std::move(edges.offsets);
  result.graph.neighbours = std::move(edges.columns);
  return absl::OkStatus();
}

absl::Status MakeEdgesCanonical(const StageReport& report, ImportedGraph& result) {
  DPAR_ASSIGN_OR_RETURN(const EdgeChanges changes,
                        CanonicaliseEdges(result.graph.edge_offsets, result.graph.neighbours, report));
  result.report.edge_count = result.graph.edge_count();
  result.report.edges_symmetrised = changes.edges_symmetrised;
  result.report.duplicates_merged = changes.duplicates_merged;
  result.report.self_loops_dropped = changes.self_loops_dropped;
  return absl::OkStatus();
}

absl::Status ReadSparseFeatures(NpzFile& file, const GraphLayout& layout, const GraphLimits& limits,
                                ImportedGraph& result) {
  const SparseNames& names = *layout.sparse_features;
  const MatrixBounds bounds = {layout.node_count, layout.feature_count, "max_feature_entries",
                               limits.max_feature_entries};
  DPAR_ASSIGN_OR_RETURN(IndexRows indices, ReadIndices(file, names, bounds, 1));
  SparseRows& rows = result.graph.features;
  rows.offsets = std::move(indices.offsets);
  rows.columns = std::move(indices.columns);
  rows.values.reserve(rows.columns.size());
  return ReadFloats(file, names.data, [&rows](float value) { rows.values.push_back(value); });
}

absl::Status MakeFeaturesCanonical(const SparseNames& names, const StageReport& report, ImportedGraph& result) {
  DPAR_ASSIGN_OR_RETURN(const std::optional<RepeatedFeature> repeated,
                        CanonicaliseFeatures(result.graph.features, result.report.zero_features_dropped, report));
  if (repeated.has_value()) {
    return GraphErrorAt(names.indices, repeated->row, "(position counts rows) names the same column twice");
  }
  return absl::OkStatus();
}

absl::Status ReadDenseFeatures(NpzFile& file, const GraphLayout& layout, const GraphLimits& limits, SparseRows& rows) {
  if (layout.feature_count > limits.max_feature_entries / layout.node_count) {
    return LimitError("max_feature_entries", limits.max_feature_entries);
  }
  size_t entries = 0;
  DPAR_RETURN_IF_ERROR(
      ReadFloats(file, layout.dense_features, [&entries](float value) { entries += value != 0 ? 1 : 0; }));
  rows.columns.reserve(entries);
  rows.values.reserve(entries);
  rows.offsets.reserve(static_cast<size_t>(layout.node_count) + 1);
  int64_t column = 0;
  return ReadFloats(file, layout.dense_features, [&](float value) {
    if (value != 0) {
      rows.columns.push_back(static_cast<int32_t>(column));
      rows.values.push_back(value);
    }
    if (++column == layout.feature_count) {
      column = 0;
      rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
    }
  });
}

absl::StatusOr<std::optional<int64_t>> ReadNumClasses(NpzFile& file, const GraphLimits& limits) {
  if (!file.Contains(kNumClasses)) {
    return std::optional<int64_t>();
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, file.ReadShape(kNumClasses));
  if (!shape.empty() && shape != std::vector<int64_t>{1}) {
    return GraphError(kNumClasses, "must be one integer");
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> count, ReadInt64(file, kNumClasses, 1));
  if (count[0] < 1) {
    return GraphError(kNumClasses, "is not above 0");
  }
  if (count[0] > std::min(limits.max_classes, kMaxColumn)) {
    return LimitError("max_classes", limits.max_classes);
  }
  return std::optional(count[0]);
}

int64_t ClassCountOf(const std::vector<int32_t>& labels) {
  return int64_t{*std::max_element(labels.begin(), labels.end())} + 1;
}

// Labels in -1..class_count-1; without a class count any label that a limit admits.
absl::StatusOr<std::vector<int32_t>> ReadLabels(NpzFile& file, int64_t node_count, std::optional<int64_t> class_count,
                                                const GraphLimits& limits) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, file.ReadShape(kLabels));
  if (shape != std::vector<int64_t>{node_count}) {
    return GraphError(kLabels, "must have one entry for each node");
  }
  const int64_t highest = class_count.has_value() ? *class_count - 1 : kMaxColumn - 1;
  std::vector<int32_t> labels;
  labels.reserve(static_cast<size_t>(node_count));
  DPAR_RETURN_IF_ERROR(ReadInt32(file, kLabels, kUnlabelled, highest, labels));
  if (!class_count.has_value()) {
    const int64_t count = ClassCountOf(labels);
    if (count == 0) {
      return GraphError(kLabels, "has no label, and the file no num_classes; state the number of classes");
    }
    if (count > limits.max_classes) {
      return LimitError("max_classes", limits.max_classes);
    }
  }
  return labels;
}

int64_t BytesToRead(const NpzFile& file, const GraphLayout& layout) {
  const auto matrix = [&file](const SparseNames& names) {
    return file.BytesOf(names.data) + file.BytesOf(names.indices) + file.BytesOf(names.indptr);
  };
  const int64_t features = layout.sparse_features.has_value()
                               ? matrix(*layout.sparse_features)
                               : 2 * file.BytesOf(layout.dense_features);  // ReadDenseFeatures reads it twice
  return file.BytesOf(kLabels) + features + matrix(layout.adjacency);
}

absl::Status Stopped() { return absl::CancelledError("reading the graph was stopped"); }

// Edges take longer: each is searched for from its other end.
absl::Status MakeCanonical(const GraphLayout& layout, const StageReport& report, ImportedGraph& result) {
  if (!report(0)) {
    return Stopped();
  }
  const auto features = static_cast<double>(result.graph.features.columns.size());
  const auto edges = 3 * static_cast<double>(result.graph.neighbours.size());
  const double share = features / std::max(1.0, features + edges);
  if (layout.sparse_features.has_value()) {
    DPAR_RETURN_IF_ERROR(MakeFeaturesCanonical(*layout.sparse_features, PartOf(report, 0, share), result));
  }
  return MakeEdgesCanonical(PartOf(report, share, 1), result);
}

absl::Status CheckDeclared(const GraphLayout& layout, const PublicSizes& declared, const GraphLimits& limits) {
  if (layout.node_count != declared.node_count) {
    return GraphErrorAt(layout.adjacency.shape, 0, "is not the declared number of nodes");
  }
  if (layout.feature_count != declared.feature_count) {
    const std::string name = layout.sparse_features.has_value() ? layout.sparse_features->shape : layout.dense_features;
    return GraphErrorAt(name, 1, "is not the declared number of features");
  }
  if (declared.class_count > std::min(limits.max_classes, kMaxColumn)) {
    return LimitError("max_classes", limits.max_classes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportedGraph> ReadGraphFile(const std::string& path, const GraphLimits& limits,
                                            const std::optional<PublicSizes>& declared, const ReadReports& reports) {
  if (!reports.parsing(0)) {
    return Stopped();
  }
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, limits.npz));
  DPAR_ASSIGN_OR_RETURN(const GraphLayout layout, ReadGraphLayout(file, limits));
  file.OnBytesRead([&reports, total = std::max(1.0, static_cast<double>(BytesToRead(file, layout)))](int64_t bytes) {
    return reports.parsing(std::min(1.0, static_cast<double>(bytes) / total));
  });
  std::optional<int64_t> class_count;
  if (declared.has_value()) {
    DPAR_RETURN_IF_ERROR(CheckDeclared(layout, *declared, limits));
    class_count = declared->class_count;
  } else {
    DPAR_ASSIGN_OR_RETURN(class_count, ReadNumClasses(file, limits));
  }
  ImportedGraph result;
  Graph& graph = result.graph;
  DPAR_ASSIGN_OR_RETURN(graph.labels, ReadLabels(file, layout.node_count, class_count, limits));
  graph.sizes = {layout.node_count, layout.feature_count, class_count.value_or(ClassCountOf(graph.labels))};
  result.classes_counted = !class_count.has_value();
  result.report.unlabelled_nodes = std::count(graph.labels.begin(), graph.labels.end(), kUnlabelled);
  if (layout.sparse_features.has_value()) {
    DPAR_RETURN_IF_ERROR(ReadSparseFeatures(file, layout, limits, result));
  } else {
    DPAR_RETURN_IF_ERROR(ReadDenseFeatures(file, layout, limits, graph.features));
  }
  DPAR_RETURN_IF_ERROR(ReadEdges(file, layout, limits, result));
  DPAR_RETURN_IF_ERROR(MakeCanonical(layout, reports.validating, result));
  return result;
}

absl::StatusOr<PublicSizes> ReadGraphSizes(const std::string& path, const GraphLimits& limits,
                                           std::optional<int64_t> classes) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, limits.npz));
  DPAR_ASSIGN_OR_RETURN(const GraphLayout layout, ReadGraphLayout(file, limits));
  if (!classes.has_value()) {
    DPAR_ASSIGN_OR_RETURN(classes, ReadNumClasses(file, limits));
  }
  DPAR_RETURN_IF_ERROR(CheckStatedClasses(classes));
  return PublicSizes{layout.node_count, layout.feature_count, *classes};
}

absl::StatusOr<SizeBounds> ReadStoredCounts(const std::string& path, const GraphLimits& limits) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, limits.npz));
  DPAR_ASSIGN_OR_RETURN(const GraphLayout layout, ReadGraphLayout(file, limits));
  const auto length_of = [&file](const std::string& name) -> absl::StatusOr<int64_t> {
    DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, file.ReadShape(name));
    return shape.size() == 1 ? absl::StatusOr<int64_t>(shape[0]) : GraphError(name, "must have one dimension");
  };
  SizeBounds counts;
  DPAR_ASSIGN_OR_RETURN(counts.edges, length_of(layout.adjacency.indices));
  counts.feature_entries = layout.node_count * layout.feature_count;
  if (layout.sparse_features.has_value()) {
    DPAR_ASSIGN_OR_RETURN(counts.feature_entries, length_of(layout.sparse_features->indices));
  }
  return counts;
}

}  // namespace dpar
