#include "server/services/call_rate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {

absl::Status CallRate::Take(const std::string& tenant, absl::Time now) {
  const double most = 2 * per_second_;
  const MutexLock lock(&mutex_);
  Bucket& bucket = buckets_.try_emplace(tenant, Bucket{most, now}).first->second;
  bucket.calls = std::min(most, bucket.calls + per_second_ * absl::ToDoubleSeconds(now - bucket.time));
  bucket.time = now;
  if (bucket.calls < 1) {
    return MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
                     absl::StrCat("a tenant may make ", per_second_, " calls a second; call less often"),
                     {{"limit", "max_calls_per_second"}, {"maximum", absl::StrCat(per_second_)}});
  }
  bucket.calls -= 1;
  return absl::OkStatus();
}

}  // namespace dpar
