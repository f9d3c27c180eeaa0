// The page size of a list call.
#ifndef DPAR_SERVER_SERVICES_PAGE_SIZE_H_
#define DPAR_SERVER_SERVICES_PAGE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {

inline constexpr int64_t kDefaultPageSize = 100;
inline constexpr int64_t kMaxPageSize = 1000;

inline absl::StatusOr<int64_t> PageSize(int32_t asked) {
  if (asked == 0) {
    return kDefaultPageSize;
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("page_size", int64_t{asked}, int64_t{1}, kMaxPageSize));
  return int64_t{asked};
}

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_PAGE_SIZE_H_
