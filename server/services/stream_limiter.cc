#include "server/services/stream_limiter.h"

#include "server/uploads/upload_writer.h"

namespace dpar {

absl::StatusOr<std::unique_ptr<StreamLimiter::Permit>> StreamLimiter::Enter(const std::string& tenant) {
  const MutexLock lock(&mutex_);
  int64_t& open = open_[tenant];
  if (open >= maximum_) {
    return LimitExceeded(limit_, maximum_);
  }
  ++open;
  return std::make_unique<Permit>(*this, tenant);
}

void StreamLimiter::Leave(const std::string& tenant) {
  const MutexLock lock(&mutex_);
  const auto open = open_.find(tenant);
  if (--open->second == 0) {
    open_.erase(open);
  }
}

}  // namespace dpar
