#include "core/graph/graph_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/graph/canonical_edges.h"
#include "core/graph/canonical_features.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr char kLabels[] = "labels";
constexpr char kNumClasses[] = "num_classes";
constexpr int64_t kMaxColumn = std::numeric_limits<int32_t>::max();

struct SparseNames {
  std::string data;
  std::string indices;
  std::string indptr;
  std::string shape;
};

// Array names in the file, and the sizes that its shapes claim.
struct Layout {
  SparseNames adjacency;
  std::optional<SparseNames> sparse_features;
  std::string dense_features;  // when sparse_features is not set
  int64_t node_count = 0;
  int64_t feature_count = 0;
};

SparseNames NamesWithPrefix(absl::string_view prefix) {
  return {absl::StrCat(prefix, "data"), absl::StrCat(prefix, "indices"), absl::StrCat(prefix, "indptr"),
          absl::StrCat(prefix, "shape")};
}

// The spelling that the file uses: `adj_data` or `adj_matrix.data`. Nothing when neither is there.
absl::StatusOr<std::optional<SparseNames>> FindMatrix(const NpzFile& file, const std::string& stem) {
  std::optional<SparseNames> found;
  for (const absl::string_view joint : {"_", "_matrix."}) {
    SparseNames names = NamesWithPrefix(absl::StrCat(stem, joint));
    const bool any = file.Contains(names.data) || file.Contains(names.indices) || file.Contains(names.indptr) ||
                     file.Contains(names.shape);
    if (any && found.has_value()) {
      return GraphError(names.shape, "stands next to the same matrix in another spelling; keep one of them");
    }
    if (any) {
      found = std::move(names);
    }
  }
  return found;
}

absl::StatusOr<std::array<int64_t, 2>> ReadMatrixShape(NpzFile& file, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, file.ReadShape(name));
  if (shape != std::vector<int64_t>{2}) {
    return GraphError(name, "must hold two integers, rows and columns");
  }
  DPAR_ASSIGN_OR_RETURN(const NpyArray array, file.ReadArray(name));
  std::array<int64_t, 2> result = {};
  if (const auto* wide = std::get_if<std::vector<int64_t>>(&array.data)) {
    std::copy(wide->begin(), wide->end(), result.begin());
  } else if (const auto* narrow = std::get_if<std::vector<int32_t>>(&array.data)) {
    std::copy(narrow->begin(), narrow->end(), result.begin());
  } else {
    return GraphError(name, "must hold two integers, rows and columns");
  }
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] < 1) {
      return GraphErrorAt(name, static_cast<int64_t>(i), "is not above 0; an empty matrix is not accepted");
    }
  }
  return result;
}

absl::StatusOr<Layout> FindFeatures(NpzFile& file, Layout layout, int64_t& rows, std::string& shape_name) {
  DPAR_ASSIGN_OR_RETURN(layout.sparse_features, FindMatrix(file, "attr"));
  for (const char* dense : {"attr_matrix", "attr"}) {
    if (file.Contains(dense) && (layout.sparse_features.has_value() || !layout.dense_features.empty())) {
      return GraphError(dense, "stands next to the same matrix in another spelling; keep one of them");
    }
    if (file.Contains(dense)) {
      layout.dense_features = dense;
    }
  }
  if (layout.sparse_features.has_value()) {
    shape_name = layout.sparse_features->shape;
    DPAR_ASSIGN_OR_RETURN(const auto shape, ReadMatrixShape(file, shape_name));
    rows = shape[0];
    layout.feature_count = shape[1];
    return layout;
  }
  if (layout.dense_features.empty()) {
    return GraphError("attr_data", "is missing; so are attr_indices, attr_indptr and attr_shape");
  }
  shape_name = layout.dense_features;
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, file.ReadShape(shape_name));
  if (shape.size() != 2 || shape[1] < 1) {
    return GraphError(shape_name, "must be a matrix with a row for each node and at least one column");
  }
  rows = shape[0];
  layout.feature_count = shape[1];
  return layout;
}

absl::StatusOr<Layout> ReadLayout(NpzFile& file, const GraphLimits& limits) {
  Layout layout;
  DPAR_ASSIGN_OR_RETURN(const std::optional<SparseNames> adjacency, FindMatrix(file, "adj"));
  if (!adjacency.has_value()) {
    return GraphError("adj_data", "is missing; so are adj_indices, adj_indptr and adj_shape");
  }
  layout.adjacency = *adjacency;
  DPAR_ASSIGN_OR_RETURN(const auto shape, ReadMatrixShape(file, layout.adjacency.shape));
  if (shape[0] != shape[1]) {
    return GraphError(layout.adjacency.shape, "is not square");
  }
  layout.node_count = shape[0];
  if (layout.node_count > std::min(limits.max_nodes, kMaxColumn)) {
    return LimitError("max_nodes", std::min(limits.max_nodes, kMaxColumn));
  }
  int64_t rows = 0;
  std::string shape_name;
  DPAR_ASSIGN_OR_RETURN(layout, FindFeatures(file, std::move(layout), rows, shape_name));
  if (rows != layout.node_count) {
    return GraphErrorAt(shape_name, 0, "disagrees with the number of nodes in the adjacency matrix");
  }
  if (layout.feature_count > std::min(limits.max_features, kMaxColumn)) {
    return LimitError("max_features", std::min(limits.max_features, kMaxColumn));
  }
  return layout;
}

// Calls visit(position, entries) for each chunk of an array of integers; entries are spans of int32 or int64.
template <typename Visit>
absl::Status ReadIntegers(NpzFile& file, const std::string& name, const Visit& visit) {
  return file.ReadChunks(name, [&](int64_t position, const NpyChunk& chunk) -> absl::Status {
    if (const auto* wide = std::get_if<std::span<const int64_t>>(&chunk)) {
      return visit(position, *wide);
    }
    if (const auto* narrow = std::get_if<std::span<const int32_t>>(&chunk)) {
      return visit(position, *narrow);
    }
    return GraphError(name, "must be an array of integers");
  });
}

template <typename Visit>
absl::Status ReadNumbers(NpzFile& file, const std::string& name, const Visit& visit) {
  return file.ReadChunks(name, [&](int64_t position, const NpyChunk& chunk) {
    return std::visit(
        [&](const auto& entries) -> absl::Status {
          if constexpr (std::is_same_v<std::decay_t<decltype(entries)>, absl::string_view>) {
            return GraphError(name, "must be an array of numbers");
          } else {
            return visit(position, entries);
          }
        },
        chunk);
  });
}

absl::StatusOr<std::vector<int64_t>> ReadInt64(NpzFile& file, const std::string& name, int64_t count) {
  std::vector<int64_t> result;
  result.reserve(static_cast<size_t>(count));
  DPAR_RETURN_IF_ERROR(ReadIntegers(file, name, [&](int64_t /*position*/, const auto& entries) {
    result.insert(result.end(), entries.begin(), entries.end());
    return absl::OkStatus();
  }));
  return result;
}

// Appends integers in low..high, which must fit int32, to `out`, which has space for them.
absl::Status ReadInt32(NpzFile& file, const std::string& name, int64_t low, int64_t high, std::vector<int32_t>& out) {
  return ReadIntegers(file, name, [&](int64_t position, const auto& entries) -> absl::Status {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] < low || entries[i] > high) {
        return GraphErrorAt(name, position + static_cast<int64_t>(i), "is out of range");
      }
      out.push_back(static_cast<int32_t>(entries[i]));
    }
    return absl::OkStatus();
  });
}

// Calls visit(value) for each entry, numbers of any type as finite float32.
template <typename Visit>
absl::Status ReadFloats(NpzFile& file, const std::string& name, const Visit& visit) {
  return ReadNumbers(file, name, [&](int64_t position, const auto& entries) -> absl::Status {
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto value = static_cast<float>(entries[i]);
      if (!std::isfinite(value)) {
        return GraphErrorAt(name, position + static_cast<int64_t>(i), "is not a finite float32 number");
      }
      visit(value);
    }
    return absl::OkStatus();
  });
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

absl::Status ReadEdges(NpzFile& file, const Layout& layout, const GraphLimits& limits, ImportedGraph& result) {
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

absl::Status ReadSparseFeatures(NpzFile& file, const Layout& layout, const GraphLimits& limits, ImportedGraph& result) {
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

absl::Status ReadDenseFeatures(NpzFile& file, const Layout& layout, const GraphLimits& limits, SparseRows& rows) {
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

int64_t BytesToRead(const NpzFile& file, const Layout& layout) {
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
absl::Status MakeCanonical(const Layout& layout, const StageReport& report, ImportedGraph& result) {
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

absl::Status CheckDeclared(const Layout& layout, const PublicSizes& declared, const GraphLimits& limits) {
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
  DPAR_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file, limits));
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
  DPAR_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file, limits));
  if (!classes.has_value()) {
    DPAR_ASSIGN_OR_RETURN(classes, ReadNumClasses(file, limits));
  }
  DPAR_RETURN_IF_ERROR(CheckStatedClasses(classes));
  return PublicSizes{layout.node_count, layout.feature_count, *classes};
}

absl::StatusOr<SizeBounds> ReadStoredCounts(const std::string& path, const GraphLimits& limits) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, limits.npz));
  DPAR_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file, limits));
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
