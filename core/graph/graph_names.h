// What the rows and classes of a graph are called, for its owner's eyes: ids never go to a server.
#ifndef DPAR_CORE_GRAPH_GRAPH_NAMES_H_
#define DPAR_CORE_GRAPH_GRAPH_NAMES_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/npz.h"

namespace dpar {

inline constexpr size_t kMaxNodeIdBytes = 128;

// Texts one after the other. Empty, or as many as there are nodes.
class NodeIds {
 public:
  void Add(absl::string_view id) {
    bytes_.append(id.data(), id.size());
    ends_.push_back(bytes_.size());
  }
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] absl::string_view operator[](int64_t node) const {
    const auto at = static_cast<size_t>(node);
    const size_t begin = at == 0 ? 0 : ends_[at - 1];
    return absl::string_view(bytes_).substr(begin, ends_[at] - begin);
  }
  [[nodiscard]] size_t longest() const;
  [[nodiscard]] NodeIds Select(std::span<const int32_t> nodes) const;

  bool operator==(const NodeIds&) const = default;

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

struct GraphNames {
  NodeIds ids;
  std::vector<std::string> classes;  // empty, or one for each class
  std::string schema;                // of the tables that it was made from, in canonical form; empty: none

  [[nodiscard]] bool empty() const { return ids.empty() && classes.empty() && schema.empty(); }
  bool operator==(const GraphNames&) const = default;
};

// The arrays node_ids (N byte strings in UTF-8), class_names (c of them) and schema (a text) of a graph's npz, each of
// which may be absent. INVALID_ARGUMENT / INVALID_GRAPH for one that does not fit.
absl::StatusOr<GraphNames> ReadGraphNames(const std::string& path, int64_t node_count, int64_t class_count);

// The same arrays to be written. The names outlive this object, and it the views.
class NameArrays {
 public:
  explicit NameArrays(const GraphNames& names);
  void AddTo(std::map<std::string, NpyView>& arrays) const;

 private:
  const GraphNames& names_;
  std::string ids_;
  std::string classes_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPH_NAMES_H_
