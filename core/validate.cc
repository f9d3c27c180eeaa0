#include "core/validate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/plain_text.h"

namespace dpar {
namespace {

constexpr size_t kMaxIdLength = 63;
constexpr size_t kMaxRequestIdLength = 128;

bool IsIdEdge(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

absl::Status ValidateRange(absl::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat(field, " must be from ", low, " to ", high, ", got ", value));
}

absl::Status ValidateRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat(field, " must be from ", low, " to ", high, ", got ", value));
}

absl::Status ValidatePositive(absl::string_view field, double value) {
  if (value > 0 && std::isfinite(value)) {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat(field, " must be finite and above 0, got ", value));
}

absl::Status ValidatePositive(absl::string_view field, double value, double high) {
  if (value > 0 && value <= high) {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat(field, " must be above 0 and at most ", high, ", got ", value));
}

absl::Status ValidateProbability(absl::string_view field, double value) {
  if (value > 0 && value < 1) {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat(field, " must be above 0 and below 1, got ", value));
}

absl::Status ValidateId(absl::string_view field, absl::string_view id) {
  const bool valid = !id.empty() && id.size() <= kMaxIdLength && IsIdEdge(id.front()) && IsIdEdge(id.back()) &&
                     std::all_of(id.begin(), id.end(), [](char c) { return IsIdEdge(c) || c == '-'; });
  if (valid) {
    return absl::OkStatus();
  }
  return InvalidField(field,
                      absl::StrCat(field, " must be 1 to ", kMaxIdLength,
                                   " characters of a-z, 0-9 and '-', starting and ending with a letter or digit"));
}

absl::Status ValidateText(absl::string_view field, absl::string_view text, size_t low, size_t high) {
  if (text.size() < low || text.size() > high || !IsPlainText(text)) {
    return InvalidField(field, absl::StrCat(field, " must be ", low, " to ", high,
                                            " characters without control characters or changes of direction"));
  }
  return absl::OkStatus();
}

absl::Status ValidateRequestId(absl::string_view request_id) {
  const bool valid = !request_id.empty() && request_id.size() <= kMaxRequestIdLength &&
                     std::all_of(request_id.begin(), request_id.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (valid) {
    return absl::OkStatus();
  }
  return InvalidField("request_id", absl::StrCat("request_id must be 1 to ", kMaxRequestIdLength,
                                                 " printable characters without spaces"));
}

}  // namespace dpar
