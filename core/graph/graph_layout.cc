#include "core/graph/graph_layout.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

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

absl::StatusOr<GraphLayout> FindFeatures(NpzFile& file, GraphLayout layout, int64_t& rows, std::string& shape_name) {
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

}  // namespace

absl::StatusOr<GraphLayout> ReadGraphLayout(NpzFile& file, const GraphLimits& limits) {
  GraphLayout layout;
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

}  // namespace dpar
