#include "server/uploads/busy_names.h"

#include <chrono>

#include "core/error.h"

namespace dpar {
namespace {

// How long a writer waits for another to notice that its connection is gone.
constexpr std::chrono::seconds kBusyWait{10};

}  // namespace

absl::StatusOr<std::unique_ptr<BusyNames::Hold>> BusyNames::Take(const std::string& name) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!released_.wait_for(lock, kBusyWait, [&] { return taken_.count(name) == 0; })) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     "another call is working on this upload; try again when it is done");
  }
  taken_.insert(name);
  return std::make_unique<Hold>(*this, name);
}

BusyNames::Hold::~Hold() {
  {
    const std::lock_guard<std::mutex> lock(names_.mutex_);
    names_.taken_.erase(name_);
  }
  names_.released_.notify_all();
}

}  // namespace dpar
