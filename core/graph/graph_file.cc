#include "core/graph/graph_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/graph/canonical_edges.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr char kLabels[] = "labels";
constexpr char kNumClasses[] = "num_classes";
constexpr int64_t kMaxColumn = std::numeric_limits<int32_t>::max();

// The four arrays of one compressed sparse matrix.
struct SparseNames {
  std::string data;
  std::string indices;
  std::string indptr;
  std::string shape;
};

// Where things stand in the file, and the sizes that its shapes claim.
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

absl::StatusOr<std::vector<int64_t>> TakeInt64(const std::string& name, NpyArray array) {
  if (auto* wide = std::get_if<std::vector<int64_t>>(&array.data)) {
    return std::move(*wide);
  }
  if (const auto* narrow = std::get_if<std::vector<int32_t>>(&array.data)) {
    return std::vector<int64_t>(narrow->begin(), narrow->end());
  }
  return GraphError(name, "must be an array of integers");
}

// Integers in low..high, which must fit int32.
absl::StatusOr<std::vector<int32_t>> TakeInt32(const std::string& name, NpyArray array, int64_t low, int64_t high) {
  const auto check = [&](const auto& entries) -> absl::Status {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] < low || entries[i] > high) {
        return GraphErrorAt(name, static_cast<int64_t>(i), "is out of range");
      }
    }
    return absl::OkStatus();
  };
  if (auto* narrow = std::get_if<std::vector<int32_t>>(&array.data)) {
    DPAR_RETURN_IF_ERROR(check(*narrow));
    return std::move(*narrow);
  }
  if (const auto* wide = std::get_if<std::vector<int64_t>>(&array.data)) {
    DPAR_RETURN_IF_ERROR(check(*wide));
    std::vector<int32_t> result(wide->size());
    std::transform(wide->begin(), wide->end(), result.begin(), [](int64_t v) { return static_cast<int32_t>(v); });
    return result;
  }
  return GraphError(name, "must be an array of integers");
}

// Numbers of any type as finite float32.
absl::StatusOr<std::vector<float>> TakeFloats(const std::string& name, NpyArray array) {
  std::vector<float> result;
  if (auto* floats = std::get_if<std::vector<float>>(&array.data)) {
    result = std::move(*floats);
  } else if (std::holds_alternative<std::string>(array.data)) {
    return GraphError(name, "must be an array of numbers");
  } else {
    std::visit(
        [&result](const auto& entries) {
          result.resize(entries.size());
          std::transform(entries.begin(), entries.end(), result.begin(), [](auto v) { return static_cast<float>(v); });
        },
        array.data);
  }
  for (size_t i = 0; i < result.size(); ++i) {
    if (!std::isfinite(result[i])) {
      return GraphErrorAt(name, static_cast<int64_t>(i), "is not a finite float32 number");
    }
  }
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

// indptr and indices of a matrix. All three lengths are compared, and the limit applied, before an entry is read.
absl::StatusOr<IndexRows> ReadIndices(NpzFile& file, const SparseNames& names, int64_t rows, int64_t columns,
                                      absl::string_view limit_name, int64_t max_entries) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> indices_shape, file.ReadShape(names.indices));
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> data_shape, file.ReadShape(names.data));
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> indptr_shape, file.ReadShape(names.indptr));
  if (indices_shape.size() != 1) {
    return GraphError(names.indices, "must have one dimension");
  }
  if (data_shape != indices_shape) {
    return GraphError(names.data, absl::StrCat("must have the shape of ", names.indices));
  }
  if (indptr_shape != std::vector<int64_t>{rows + 1}) {
    return GraphError(names.indptr, absl::StrCat("must have one entry more than ", names.shape, " has rows"));
  }
  if (indices_shape[0] > max_entries) {
    return LimitError(limit_name, max_entries);
  }
  IndexRows result;
  DPAR_ASSIGN_OR_RETURN(NpyArray indptr, file.ReadArray(names.indptr));
  DPAR_ASSIGN_OR_RETURN(result.offsets, TakeInt64(names.indptr, std::move(indptr)));
  DPAR_RETURN_IF_ERROR(CheckOffsets(names.indptr, result.offsets, indices_shape[0]));
  DPAR_ASSIGN_OR_RETURN(NpyArray indices, file.ReadArray(names.indices));
  DPAR_ASSIGN_OR_RETURN(result.columns, TakeInt32(names.indices, std::move(indices), 0, columns - 1));
  return result;
}

// The weights say nothing more than that there is an edge, or the file is refused.
absl::Status CheckWeights(NpzFile& file, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const NpyArray array, file.ReadArray(name));
  if (std::holds_alternative<std::string>(array.data)) {
    return GraphError(name, "must be an array of numbers");
  }
  return std::visit(
      [&name](const auto& weights) -> absl::Status {
        for (size_t i = 0; i < weights.size(); ++i) {
          const auto weight = static_cast<double>(weights[i]);
          if (!std::isfinite(weight) || weight == 0) {
            return GraphErrorAt(name, static_cast<int64_t>(i), "is not a finite weight other than 0");
          }
          if (weights[i] != weights[0]) {
            return GraphErrorAt(name, static_cast<int64_t>(i),
                                "differs from the first weight; weighted edges are not supported");
          }
        }
        return absl::OkStatus();
      },
      array.data);
}

absl::Status ReadEdges(NpzFile& file, const Layout& layout, const GraphLimits& limits, ImportedGraph& result) {
  const SparseNames& names = layout.adjacency;
  DPAR_ASSIGN_OR_RETURN(IndexRows edges,
                        ReadIndices(file, names, layout.node_count, layout.node_count, "max_edges", limits.max_edges));
  DPAR_RETURN_IF_ERROR(CheckWeights(file, names.data));
  const EdgeChanges changes = CanonicaliseEdges(edges.offsets, edges.columns);
  result.graph.edge_offsets = std::move(edges.offsets);
  result.graph.neighbours = std::move(edges.columns);
  result.report.edge_count = result.graph.edge_count();
  result.report.edges_symmetrised = changes.edges_symmetrised;
  result.report.duplicates_merged = changes.duplicates_merged;
  result.report.self_loops_dropped = changes.self_loops_dropped;
  return absl::OkStatus();
}

// Sorts one row by column. False when a column comes twice.
bool SortRow(std::span<int32_t> columns, std::span<float> values, std::vector<std::pair<int32_t, float>>& scratch) {
  if (!std::is_sorted(columns.begin(), columns.end())) {
    scratch.clear();
    for (size_t i = 0; i < columns.size(); ++i) {
      scratch.emplace_back(columns[i], values[i]);
    }
    std::sort(scratch.begin(), scratch.end());
    for (size_t i = 0; i < columns.size(); ++i) {
      std::tie(columns[i], values[i]) = scratch[i];
    }
  }
  return std::adjacent_find(columns.begin(), columns.end()) == columns.end();
}

// Ascending columns, zeros dropped, in place.
absl::Status CanonicaliseFeatures(const std::string& indices_name, SparseRows& rows, int64_t& zeros_dropped) {
  std::vector<std::pair<int32_t, float>> scratch;
  size_t write = 0;
  size_t read = 0;
  for (size_t row = 0; row + 1 < rows.offsets.size(); ++row) {
    const auto end = static_cast<size_t>(rows.offsets[row + 1]);
    if (!SortRow(std::span(rows.columns).subspan(read, end - read), std::span(rows.values).subspan(read, end - read),
                 scratch)) {
      return GraphErrorAt(indices_name, static_cast<int64_t>(row),
                          "(position counts rows) names the same column twice");
    }
    for (; read < end; ++read) {
      if (rows.values[read] == 0) {
        ++zeros_dropped;
        continue;
      }
      rows.columns[write] = rows.columns[read];
      rows.values[write] = rows.values[read];
      ++write;
    }
    rows.offsets[row + 1] = static_cast<int64_t>(write);
  }
  rows.columns.resize(write);
  rows.values.resize(write);
  return absl::OkStatus();
}

absl::Status ReadSparseFeatures(NpzFile& file, const Layout& layout, const GraphLimits& limits, ImportedGraph& result) {
  const SparseNames& names = *layout.sparse_features;
  DPAR_ASSIGN_OR_RETURN(IndexRows indices, ReadIndices(file, names, layout.node_count, layout.feature_count,
                                                       "max_feature_entries", limits.max_feature_entries));
  SparseRows& rows = result.graph.features;
  rows.offsets = std::move(indices.offsets);
  rows.columns = std::move(indices.columns);
  DPAR_ASSIGN_OR_RETURN(NpyArray data, file.ReadArray(names.data));
  DPAR_ASSIGN_OR_RETURN(rows.values, TakeFloats(names.data, std::move(data)));
  return CanonicaliseFeatures(names.indices, rows, result.report.zero_features_dropped);
}

absl::Status ReadDenseFeatures(NpzFile& file, const Layout& layout, const GraphLimits& limits, Graph& graph) {
  if (layout.feature_count > limits.max_feature_entries / layout.node_count) {
    return LimitError("max_feature_entries", limits.max_feature_entries);
  }
  DPAR_ASSIGN_OR_RETURN(NpyArray array, file.ReadArray(layout.dense_features));
  DPAR_ASSIGN_OR_RETURN(const std::vector<float> values, TakeFloats(layout.dense_features, std::move(array)));
  size_t at = 0;
  for (int64_t row = 0; row < layout.node_count; ++row) {
    for (int64_t column = 0; column < layout.feature_count; ++column, ++at) {
      if (values[at] != 0) {
        graph.features.columns.push_back(static_cast<int32_t>(column));
        graph.features.values.push_back(values[at]);
      }
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
  }
  return absl::OkStatus();
}

// num_classes, when the file has it.
absl::StatusOr<std::optional<int64_t>> ReadNumClasses(NpzFile& file, const GraphLimits& limits) {
  if (!file.Contains(kNumClasses)) {
    return std::optional<int64_t>();
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, file.ReadShape(kNumClasses));
  if (!shape.empty() && shape != std::vector<int64_t>{1}) {
    return GraphError(kNumClasses, "must be one integer");
  }
  DPAR_ASSIGN_OR_RETURN(NpyArray array, file.ReadArray(kNumClasses));
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> count, TakeInt64(kNumClasses, std::move(array)));
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
  DPAR_ASSIGN_OR_RETURN(NpyArray array, file.ReadArray(kLabels));
  const int64_t highest = class_count.has_value() ? *class_count - 1 : kMaxColumn - 1;
  DPAR_ASSIGN_OR_RETURN(std::vector<int32_t> labels, TakeInt32(kLabels, std::move(array), kUnlabelled, highest));
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
                                            const std::optional<PublicSizes>& declared) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, limits.npz));
  DPAR_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file, limits));
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
  result.report.unlabelled_nodes = std::count(graph.labels.begin(), graph.labels.end(), kUnlabelled);
  if (layout.sparse_features.has_value()) {
    DPAR_RETURN_IF_ERROR(ReadSparseFeatures(file, layout, limits, result));
  } else {
    DPAR_RETURN_IF_ERROR(ReadDenseFeatures(file, layout, limits, graph));
  }
  DPAR_RETURN_IF_ERROR(ReadEdges(file, layout, limits, result));
  return result;
}

absl::StatusOr<DeclaredSizes> ReadGraphSizes(const std::string& path, const GraphLimits& limits) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, limits.npz));
  DPAR_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file, limits));
  DPAR_ASSIGN_OR_RETURN(const std::optional<int64_t> class_count, ReadNumClasses(file, limits));
  DeclaredSizes result;
  result.classes_from_labels = !class_count.has_value();
  result.sizes = {layout.node_count, layout.feature_count, class_count.value_or(0)};
  if (result.classes_from_labels) {
    DPAR_ASSIGN_OR_RETURN(const auto labels, ReadLabels(file, layout.node_count, class_count, limits));
    result.sizes.class_count = ClassCountOf(labels);
  }
  return result;
}

absl::Status WriteGraphFile(const std::string& path, const Graph& graph) {
  const std::vector<float> weights(graph.neighbours.size(), 1.0F);
  const std::array<int64_t, 2> adjacency_shape = {graph.sizes.node_count, graph.sizes.node_count};
  const std::array<int64_t, 2> feature_shape = {graph.sizes.node_count, graph.sizes.feature_count};
  const std::array<int64_t, 1> class_count = {graph.sizes.class_count};
  const auto vector_view = [](const auto& entries) {
    return NpyView{{static_cast<int64_t>(entries.size())}, std::span(entries)};
  };
  return WriteNpzFile(path, {{"adj_data", vector_view(weights)},
                             {"adj_indices", vector_view(graph.neighbours)},
                             {"adj_indptr", vector_view(graph.edge_offsets)},
                             {"adj_shape", vector_view(adjacency_shape)},
                             {"attr_data", vector_view(graph.features.values)},
                             {"attr_indices", vector_view(graph.features.columns)},
                             {"attr_indptr", vector_view(graph.features.offsets)},
                             {"attr_shape", vector_view(feature_shape)},
                             {kLabels, vector_view(graph.labels)},
                             {kNumClasses, NpyView{{}, std::span<const int64_t>(class_count)}}});
}

}  // namespace dpar
