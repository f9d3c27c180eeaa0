// How many streams a tenant has open, and no more than it may.
#ifndef DPAR_SERVER_SERVICES_STREAM_LIMITER_H_
#define DPAR_SERVER_SERVICES_STREAM_LIMITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"

namespace dpar {

// Thread-safe. Each stream holds a thread of the server, so this also bounds what one tenant can take of them.
class StreamLimiter {
 public:
  explicit StreamLimiter(int64_t max_streams) : max_streams_(max_streams) {}

  // Counts as one stream until it is destroyed.
  class Slot {
   public:
    Slot(StreamLimiter& limiter, std::string tenant) : limiter_(limiter), tenant_(std::move(tenant)) {}
    ~Slot() { limiter_.Leave(tenant_); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    StreamLimiter& limiter_;
    const std::string tenant_;
  };

  // RESOURCE_EXHAUSTED / LIMIT_EXCEEDED when the tenant (operators count as one) has max_streams already.
  absl::StatusOr<std::unique_ptr<Slot>> Enter(const std::string& tenant);

 private:
  void Leave(const std::string& tenant);

  const int64_t max_streams_;
  std::mutex mutex_;
  std::map<std::string, int64_t> open_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_STREAM_LIMITER_H_
