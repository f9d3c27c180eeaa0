// Page tokens of lists by creation: time and name of the last item before.
#ifndef DPAR_SERVER_STORE_PAGING_H_
#define DPAR_SERVER_STORE_PAGING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/message_text.h"

namespace dpar {

struct PagePosition {
  int64_t time = 0;  // microseconds
  std::string name;
};

std::string MakePageToken(const PagePosition& position);

// An empty token is the beginning. INVALID_ARGUMENT / INVALID_FIELD unless MakePageToken made it.
absl::StatusOr<PagePosition> ParsePageToken(absl::string_view token);

// Drops the item read past the page's size; returns the next token, empty on the last page.
template <typename Item>
std::string CutPage(std::vector<Item>& items, int64_t page_size) {
  if (static_cast<int64_t>(items.size()) <= page_size) {
    return "";
  }
  items.resize(static_cast<size_t>(page_size));
  return MakePageToken({ToMicroseconds(items.back().create_time()), items.back().name()});
}

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_PAGING_H_
