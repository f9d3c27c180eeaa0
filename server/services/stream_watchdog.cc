#include "server/services/stream_watchdog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

// A stream ends at most a quarter of its patience, or a second, late.
constexpr int kLooksInPatience = 4;
constexpr absl::Duration kLongestPeriod = absl::Seconds(1);

}  // namespace

absl::Status IdleTooLong(absl::Duration patience) {
  const std::string seconds = absl::StrCat(absl::ToInt64Seconds(patience));
  return MakeError(absl::StatusCode::kDeadlineExceeded, v1::LIMIT_EXCEEDED,
                   absl::StrCat("the stream's caller sent or took nothing for ", seconds,
                                " seconds; go on with a new call from where this one was"),
                   {{"limit", "max_idle_seconds"}, {"maximum", seconds}});
}

StreamWatchdog::StreamWatchdog(absl::Duration patience, Clock clock)
    : patience_(patience), clock_(std::move(clock)), looking_([this] {
        CancelIdle();
        return std::min(kLongestPeriod, patience_ / kLooksInPatience);
      }) {}

StreamWatchdog::Handle::Handle(StreamWatchdog& watchdog, std::function<void()> cancel)
    : watchdog_(watchdog), cancel_(std::move(cancel)), last_(absl::ToUnixMicros(watchdog.clock_())) {
  const MutexLock lock(&watchdog_.mutex_);
  watchdog_.handles_.insert(this);
}

StreamWatchdog::Handle::~Handle() {
  const MutexLock lock(&watchdog_.mutex_);
  watchdog_.handles_.erase(this);
}

void StreamWatchdog::Handle::Touch() { last_ = absl::ToUnixMicros(watchdog_.clock_()); }

absl::Status StreamWatchdog::Handle::status() const {
  return idle_ ? IdleTooLong(watchdog_.patience_) : absl::OkStatus();
}

std::unique_ptr<StreamWatchdog::Handle> StreamWatchdog::Enter(grpc::ServerContextBase& context) {
  return Enter([&context] { context.TryCancel(); });
}

std::unique_ptr<StreamWatchdog::Handle> StreamWatchdog::Enter(std::function<void()> cancel) {
  return std::make_unique<Handle>(*this, std::move(cancel));
}

void StreamWatchdog::CancelIdle() {
  const int64_t idle_since = absl::ToUnixMicros(clock_() - patience_);
  // Held while cancelling, so that no handle and no call context is destroyed meanwhile.
  const MutexLock lock(&mutex_);
  for (Handle* handle : handles_) {
    if (handle->last_ <= idle_since && !handle->idle_.exchange(true)) {
      spdlog::info("a stream is ended: its caller sent or took nothing for {} s (limit max_idle_seconds)",
                   absl::ToInt64Seconds(patience_));
      handle->cancel_();
    }
  }
}

}  // namespace dpar
