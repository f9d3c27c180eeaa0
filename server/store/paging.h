// Page tokens of lists ordered by creation: the time and the name of the last item of the page before.
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

// The beginning for an empty token. INVALID_ARGUMENT / INVALID_FIELD unless it came from MakePageToken.
absl::StatusOr<PagePosition> ParsePageToken(absl::string_view token);

// Drops what was read past the page's size, to see whether there is more: the token of the next page, empty when this
// is the last. Items have a name and a create_time.
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
