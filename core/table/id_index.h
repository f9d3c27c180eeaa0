// The ids of a table's rows, and the row of each. Memory: the ids, 8 bytes a row, and 4 bytes for each of at most four
// times as many places, until Release.
#ifndef DPAR_CORE_TABLE_ID_INDEX_H_
#define DPAR_CORE_TABLE_ID_INDEX_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/graph/graph_names.h"

namespace dpar {

class IdIndex {
 public:
  IdIndex() : places_(kFirstPlaces, kEmpty) {}

  // Gives the id the next row. Nothing if it was added before: its row is that of Find.
  std::optional<int32_t> Add(absl::string_view id);
  [[nodiscard]] std::optional<int32_t> Find(absl::string_view id) const;
  [[nodiscard]] int64_t size() const { return ids_.size(); }

  // The ids in the order of rows; the index is then empty.
  NodeIds Release();

 private:
  static constexpr size_t kFirstPlaces = 1024;
  static constexpr int32_t kEmpty = -1;

  // The place that holds the id's row, or the empty one where it belongs.
  [[nodiscard]] size_t PlaceOf(absl::string_view id) const;
  void Grow();

  NodeIds ids_;
  std::vector<int32_t> places_;  // a power of two; linear probing
};

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_ID_INDEX_H_
