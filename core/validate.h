// Named validators: each says which field was wrong and what is allowed. Comparisons are written so that NaN fails.
#ifndef DPAR_CORE_VALIDATE_H_
#define DPAR_CORE_VALIDATE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace dpar {

absl::Status ValidateRange(absl::string_view field, double value, double low, double high);
absl::Status ValidateRange(absl::string_view field, int64_t value, int64_t low, int64_t high);

absl::Status ValidatePositive(absl::string_view field, double value);  // value > 0 and finite

absl::Status ValidatePositive(absl::string_view field, double value, double high);  // 0 < value <= high

absl::Status ValidateProbability(absl::string_view field, double value);  // 0 < value < 1

// A resource id: 1 to 63 characters of [a-z0-9-], starting and ending with a letter or digit.
absl::Status ValidateId(absl::string_view field, absl::string_view id);

// `low` to `high` bytes of text that shows as it is (core/plain_text.h).
absl::Status ValidateText(absl::string_view field, absl::string_view text, size_t low, size_t high);

// A request id: 1 to 128 printable ASCII characters.
absl::Status ValidateRequestId(absl::string_view request_id);

}  // namespace dpar

#endif  // DPAR_CORE_VALIDATE_H_
