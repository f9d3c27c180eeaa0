// Page tokens of lists ordered by creation: the time and the name of the last item of the page before.
#ifndef DPAR_SERVER_STORE_PAGING_H_
#define DPAR_SERVER_STORE_PAGING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

struct PagePosition {
  int64_t time = 0;  // microseconds
  std::string name;
};

std::string MakePageToken(const PagePosition& position);

// INVALID_ARGUMENT / INVALID_FIELD unless `token` came from MakePageToken.
absl::StatusOr<PagePosition> ParsePageToken(absl::string_view token);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_PAGING_H_
