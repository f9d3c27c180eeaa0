#include "server/store/paging.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"

namespace dpar {

std::string MakePageToken(const PagePosition& position) { return absl::StrCat(position.time, ":", position.name); }

absl::StatusOr<PagePosition> ParsePageToken(absl::string_view token) {
  if (token.empty()) {
    return PagePosition();
  }
  const std::vector<std::string> parts = absl::StrSplit(token, absl::MaxSplits(':', 1));
  PagePosition position;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &position.time) || parts[1].empty()) {
    return InvalidField("page_token", "page_token must be the next_page_token of an earlier page");
  }
  position.name = parts[1];
  return position;
}

}  // namespace dpar
