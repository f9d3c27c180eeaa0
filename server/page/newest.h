// The newest of recurring events and how often they happened, in bounded memory.
#ifndef DPAR_SERVER_PAGE_NEWEST_H_
#define DPAR_SERVER_PAGE_NEWEST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace dpar {

inline constexpr size_t kMaxNewest = 20;

// Items have a `time`.
template <typename Item>
class Newest {
 public:
  // In the order of their times.
  void Add(Item item) {
    items_.insert(items_.begin(), std::move(item));
    if (items_.size() > kMaxNewest) {
      ++dropped_[HourOf(items_.back().time)];
      items_.pop_back();
    }
    if (dropped_.size() > kMaxHours) {
      dropped_.erase(dropped_.begin());
    }
  }

  // Newest first, at most kMaxNewest.
  [[nodiscard]] const std::vector<Item>& items() const { return items_; }

  // `since` is at most a month ago. Events that are no longer kept are counted to the hour.
  [[nodiscard]] int64_t CountSince(absl::Time since) const {
    const int64_t kept =
        std::count_if(items_.begin(), items_.end(), [&](const Item& item) { return item.time >= since; });
    if (kept < static_cast<int64_t>(items_.size())) {
      return kept;
    }
    int64_t count = kept;
    for (auto hour = dropped_.lower_bound(HourOf(since)); hour != dropped_.end(); ++hour) {
      count += hour->second;
    }
    return count;
  }

 private:
  static constexpr size_t kMaxHours = size_t{24} * 32;

  static int64_t HourOf(absl::Time time) { return absl::ToUnixSeconds(time) / 3600; }

  std::vector<Item> items_;
  std::map<int64_t, int64_t> dropped_;  // hour since 1970 to how many
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_NEWEST_H_
