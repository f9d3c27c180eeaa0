#ifndef DPAR_SERVER_SERVICES_PAGE_SIZE_H_
#define DPAR_SERVER_SERVICES_PAGE_SIZE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {

inline constexpr int64_t kDefaultPageSize = 100;
inline constexpr int64_t kMaxPageSize = 1000;

inline absl::StatusOr<int64_t> PageSize(int32_t asked, int64_t otherwise = kDefaultPageSize,
                                        int64_t most = kMaxPageSize) {
  if (asked == 0) {
    return otherwise;
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("page_size", int64_t{asked}, int64_t{1}, most));
  return int64_t{asked};
}

// For lists whose next_page_token is a position.
inline absl::StatusOr<int64_t> PositionOfToken(const std::string& token, int64_t otherwise) {
  int64_t position = otherwise;
  if (!token.empty() && (!absl::SimpleAtoi(token, &position) || position < 1)) {
    return InvalidField("page_token", "page_token must be empty or the next_page_token of the page before");
  }
  return position;
}

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_PAGE_SIZE_H_
