// Which arrays of an npz file are a graph, and how their numbers are read (graph_file.h).
#ifndef DPAR_CORE_GRAPH_GRAPH_LAYOUT_H_
#define DPAR_CORE_GRAPH_GRAPH_LAYOUT_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph_error.h"
#include "core/graph/graph_file.h"
#include "core/graph/npz.h"

namespace dpar {

inline constexpr int64_t kMaxColumn = std::numeric_limits<int32_t>::max();

struct SparseNames {
  std::string data;
  std::string indices;
  std::string indptr;
  std::string shape;
};

// Array names in the file, and the sizes that its shapes claim.
struct GraphLayout {
  SparseNames adjacency;
  std::optional<SparseNames> sparse_features;
  std::string dense_features;  // when sparse_features is not set
  int64_t node_count = 0;
  int64_t feature_count = 0;
};

absl::StatusOr<GraphLayout> ReadGraphLayout(NpzFile& file, const GraphLimits& limits);

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

// Appends integers in low..high, which must fit int32, to `out`, which has space for them.
absl::Status ReadInt32(NpzFile& file, const std::string& name, int64_t low, int64_t high, std::vector<int32_t>& out);

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

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPH_LAYOUT_H_
