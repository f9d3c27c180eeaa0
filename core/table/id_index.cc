#include "core/table/id_index.h"

#include <xxhash.h>

namespace dpar {

size_t IdIndex::PlaceOf(absl::string_view id) const {
  const size_t mask = places_.size() - 1;
  size_t place = XXH3_64bits(id.data(), id.size()) & mask;
  while (places_[place] != kEmpty && ids_[places_[place]] != id) {
    place = (place + 1) & mask;
  }
  return place;
}

std::optional<int32_t> IdIndex::Add(absl::string_view id) {
  if (2 * static_cast<size_t>(ids_.size()) >= places_.size()) {
    Grow();
  }
  const size_t place = PlaceOf(id);
  if (places_[place] != kEmpty) {
    return std::nullopt;
  }
  const auto row = static_cast<int32_t>(ids_.size());
  ids_.Add(id);
  places_[place] = row;
  return row;
}

std::optional<int32_t> IdIndex::Find(absl::string_view id) const {
  const int32_t row = places_[PlaceOf(id)];
  return row == kEmpty ? std::nullopt : std::optional(row);
}

void IdIndex::Grow() {
  const size_t count = 2 * places_.size();
  places_ = std::vector<int32_t>();  // given back before the larger one is taken
  places_.assign(count, kEmpty);
  for (int64_t row = 0; row < ids_.size(); ++row) {
    const absl::string_view id = ids_[row];
    places_[PlaceOf(id)] = static_cast<int32_t>(row);
  }
}

NodeIds IdIndex::Release() {
  places_ = std::vector<int32_t>(kFirstPlaces, kEmpty);
  return std::exchange(ids_, NodeIds());
}

}  // namespace dpar
