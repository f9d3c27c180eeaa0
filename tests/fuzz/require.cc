#include "tests/fuzz/require.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar::fuzz {

void Require(bool holds, absl::string_view what) {
  if (!holds) {
    std::cerr << "violated: " << what << std::endl;
    std::abort();
  }
}

void RequireJudged(const absl::Status& status, std::initializer_list<absl::StatusCode> allowed) {
  if (status.ok()) {
    return;
  }
  const std::string shown = status.ToString();
  Require(std::find(allowed.begin(), allowed.end(), status.code()) != allowed.end(),
          absl::StrCat("an error of an allowed code: ", shown));
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(status);
  Require(info.has_value() && info->domain() == kErrorDomain, absl::StrCat("an error with a reason: ", shown));
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  Require(v1::ErrorReason_Parse(info->reason(), &reason) && reason != v1::ERROR_REASON_UNSPECIFIED,
          absl::StrCat("a reason of the API: ", shown));
  Require(!status.message().empty(), absl::StrCat("an error with a message: ", shown));
}

}  // namespace dpar::fuzz
