#ifndef DPAR_SERVER_SERVICES_STREAM_LIMITER_H_
#define DPAR_SERVER_SERVICES_STREAM_LIMITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"

namespace dpar {

// Limits a tenant's open streams, and so its share of the server's threads. Thread-safe.
class StreamLimiter {
 public:
  // `limit` is the field of Limits that `maximum` comes from.
  StreamLimiter(std::string limit, int64_t maximum) : limit_(std::move(limit)), maximum_(maximum) {}

  class Permit {
   public:
    Permit(StreamLimiter& limiter, std::string tenant) : limiter_(limiter), tenant_(std::move(tenant)) {}
    ~Permit() { limiter_.Leave(tenant_); }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;

   private:
    StreamLimiter& limiter_;
    const std::string tenant_;
  };

  // RESOURCE_EXHAUSTED / LIMIT_EXCEEDED at the maximum; operators count as one tenant.
  absl::StatusOr<std::unique_ptr<Permit>> Enter(const std::string& tenant);

 private:
  void Leave(const std::string& tenant);

  const std::string limit_;
  const int64_t maximum_;
  Mutex mutex_;
  std::map<std::string, int64_t> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_STREAM_LIMITER_H_
