#include "server/fair_line.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/error.h"

namespace dpar {
namespace {

// Asked again and again rather than awaited: whether a turn is wanted changes without notice.
constexpr absl::Duration kAskPeriod = absl::Milliseconds(10);

}  // namespace

const FairLine::Turn* FairLine::Next() const {
  if (running_ >= at_once_) {
    return nullptr;
  }
  const size_t of_tenant = std::max<size_t>(1, at_once_ / 2);
  const Turn* next = nullptr;
  std::pair<size_t, int64_t> least;
  for (const Turn* turn : waiting_) {
    const Tenant& tenant = tenants_.at(turn->tenant_);
    const std::pair<size_t, int64_t> order(tenant.running, tenant.last_start);
    // The first of equals, so a tenant's own turns keep their order.
    if (tenant.running < of_tenant && (next == nullptr || order < least)) {
      next = turn;
      least = order;
    }
  }
  return next;
}

FairLine::Turn::Turn(FairLine& line, std::string tenant) : line_(line), tenant_(std::move(tenant)) {
  const MutexLock lock(&line_.mutex_);
  ++line_.tenants_[tenant_].turns;
  line_.waiting_.push_back(this);
}

FairLine::Turn::~Turn() {
  const MutexLock lock(&line_.mutex_);
  Tenant& tenant = line_.tenants_.at(tenant_);
  if (runs_) {
    --line_.running_;
    --tenant.running;
  } else {
    line_.waiting_.remove(this);
  }
  if (--tenant.turns == 0) {
    line_.tenants_.erase(tenant_);
  }
}

absl::Status FairLine::Turn::Await(const std::function<bool()>& wanted) {
  for (bool first = true;; first = false) {
    if (!wanted()) {
      return absl::CancelledError("nobody waits for this work any more");
    }
    {
      const MutexLock lock(&line_.mutex_);
      if (line_.Next() == this) {
        Tenant& tenant = line_.tenants_.at(tenant_);
        tenant.last_start = ++line_.starts_;
        ++tenant.running;
        ++line_.running_;
        line_.waiting_.remove(this);
        runs_ = true;
        return absl::OkStatus();
      }
      if (first && line_.waiting_.size() > line_.max_waiting_) {
        return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                         "too many callers wait for work of this kind; try again");
      }
    }
    absl::SleepFor(kAskPeriod);
  }
}

}  // namespace dpar
