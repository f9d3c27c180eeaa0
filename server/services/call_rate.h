#ifndef DPAR_SERVER_SERVICES_CALL_RATE_H_
#define DPAR_SERVER_SERVICES_CALL_RATE_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/mutex.h"

namespace dpar {

// Thread-safe. A bucket of calls for each tenant, filled at a steady rate.
class CallRate {
 public:
  explicit CallRate(double per_second) : per_second_(per_second) {}

  // RESOURCE_EXHAUSTED / LIMIT_EXCEEDED max_calls_per_second once a tenant has used up two seconds' calls. `now` is
  // steady.
  absl::Status Take(const std::string& tenant, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Bucket {
    double calls = 0;
    absl::Time time;
  };

  const double per_second_;
  Mutex mutex_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);  // of known tenants only, which are limited
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_CALL_RATE_H_
