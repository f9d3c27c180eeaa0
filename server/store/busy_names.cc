#include "server/store/busy_names.h"

#include "core/error.h"

namespace dpar {

class BusyNames::Hold final : public NameHold {
 public:
  Hold(BusyNames& names, std::string name) : names_(names), name_(std::move(name)) {}
  ~Hold() override {
    const MutexLock lock(&names_.mutex_);
    names_.taken_.erase(name_);
  }

 private:
  BusyNames& names_;
  const std::string name_;
};

absl::Status NameIsBusy() {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "another call is working on this; try again when it is done");
}

absl::StatusOr<std::unique_ptr<NameHold>> BusyNames::Take(const std::string& name, absl::Duration patience) {
  const MutexLock lock(&mutex_);
  const auto is_free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return taken_.count(name) == 0; };
  if (!mutex_.AwaitWithTimeout(Condition(&is_free), patience)) {
    return NameIsBusy();
  }
  taken_.insert(name);
  return std::make_unique<Hold>(*this, name);
}

}  // namespace dpar
