#include "server/auth/last_use.h"

#include <algorithm>
#include <utility>

#include "core/status_macros.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

// Uses of this long go into one transaction.
constexpr absl::Duration kPeriod = absl::Seconds(1);

absl::Time Minute(absl::Time time) { return absl::FromUnixSeconds(absl::ToUnixSeconds(time) / 60 * 60); }

}  // namespace

LastUseLog::~LastUseLog() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) {
    thread_.join();
    // When the store is gone by now, the last minute goes with it.
    Flush().IgnoreError();
  }
}

void LastUseLog::Start() {
  thread_ = std::thread([this] { Run(); });
}

void LastUseLog::Note(const std::string& token_id, absl::Time now) {
  const absl::Time minute = Minute(now);
  const absl::MutexLock lock(&mutex_);
  absl::Time& noted = noted_.try_emplace(token_id, absl::InfinitePast()).first->second;
  if (noted >= minute) {
    return;
  }
  noted = minute;
  pending_[token_id] = minute;
}

absl::Status LastUseLog::Flush() {
  Uses uses;
  {
    const absl::MutexLock lock(&mutex_);
    uses.swap(pending_);
  }
  if (uses.empty()) {
    return absl::OkStatus();
  }
  // In the order of ids, so that two servers that write the same rows do not wait for each other in a circle.
  const absl::Status status = database_.Write([&](Transaction& transaction) -> absl::Status {
    for (const auto& [id, minute] : uses) {
      DPAR_RETURN_IF_ERROR(SetLastUse(transaction, id, minute));
    }
    return absl::OkStatus();
  });
  const absl::MutexLock lock(&mutex_);
  if (!status.ok()) {
    // A later use that was noted meanwhile stays.
    pending_.merge(uses);
    return status;
  }
  absl::Time latest = absl::InfinitePast();
  for (const auto& [id, minute] : noted_) {
    latest = std::max(latest, minute);
  }
  std::erase_if(noted_, [&](const auto& use) { return use.second < latest; });
  return absl::OkStatus();
}

void LastUseLog::Run() {
  const auto noted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !pending_.empty(); };
  for (bool stop = false; !stop;) {
    {
      const absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&noted));
      stop = mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kPeriod);
    }
    Flush().IgnoreError();
  }
}

}  // namespace dpar
