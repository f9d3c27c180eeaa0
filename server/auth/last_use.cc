#include "server/auth/last_use.h"

#include <algorithm>

#include "core/status_macros.h"
#include "server/store/tokens.h"

namespace dpar {
namespace {

// Uses within this period go into one transaction.
constexpr absl::Duration kPeriod = absl::Seconds(1);

absl::Time Minute(absl::Time time) { return absl::FromUnixSeconds(absl::ToUnixSeconds(time) / 60 * 60); }

}  // namespace

LastUseLog::~LastUseLog() {
  if (writing_ != nullptr) {
    writing_.reset();
    // On failure the last minute's uses are lost.
    Flush().IgnoreError();
  }
}

void LastUseLog::Start() {
  writing_ = std::make_unique<Periodic>([this] {
    Flush().IgnoreError();
    return kPeriod;
  });
}

void LastUseLog::Note(const std::string& token_id, absl::Time now) {
  const absl::Time minute = Minute(now);
  const MutexLock lock(&mutex_);
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
    const MutexLock lock(&mutex_);
    uses.swap(pending_);
  }
  if (uses.empty()) {
    return absl::OkStatus();
  }
  // Ordered by id, so that two servers writing the same rows cannot deadlock.
  const absl::Status status = database_.Write([&](Transaction& transaction) -> absl::Status {
    for (const auto& [id, minute] : uses) {
      DPAR_RETURN_IF_ERROR(SetLastUse(transaction, id, minute));
    }
    return absl::OkStatus();
  });
  const MutexLock lock(&mutex_);
  if (!status.ok()) {
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

}  // namespace dpar
