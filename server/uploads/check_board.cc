#include "server/uploads/check_board.h"

#include <algorithm>
#include <utility>

#include "server/resource_name.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr char kWaiting[] = "waiting";

}  // namespace

std::optional<v1::UploadCheck> CheckBoard::Find(const std::string& upload) const {
  const MutexLock lock(&mutex_);
  const auto found = shown_.find(upload);
  return found == shown_.end() ? std::nullopt : std::optional(found->second);
}

void CheckBoard::Show(const std::string& upload, const std::string& stage, double fraction) {
  const MutexLock lock(&mutex_);
  v1::UploadCheck& check = shown_.at(upload);
  // Of two reporting threads, the slower may come last.
  check.set_fraction(check.stage() == stage ? std::max(check.fraction(), fraction) : fraction);
  check.set_stage(stage);
}

CheckBoard::Check::Check(CheckBoard& board, std::string upload, absl::Time start, std::function<bool()> wanted)
    : board_(board), upload_(std::move(upload)), turn_(board.line_, TenantOf(upload_)), wanted_(std::move(wanted)) {
  const MutexLock lock(&board_.mutex_);
  v1::UploadCheck& check = board_.shown_[upload_];
  check.set_stage(kWaiting);
  *check.mutable_start_time() = ToTimestamp(absl::ToUnixMicros(start));
}

CheckBoard::Check::~Check() {
  const MutexLock lock(&board_.mutex_);
  board_.shown_.erase(upload_);
}

absl::Status CheckBoard::Check::AwaitTurn() {
  return turn_.Await([this] { return Wanted().ok(); });
}

StageReport CheckBoard::Check::Stage(const std::string& stage) {
  return [this, stage](double fraction) { return Report(stage, fraction); };
}

absl::Status CheckBoard::Check::Wanted() {
  const MutexLock lock(&mutex_);
  stopped_ = stopped_ || !wanted_();
  return stopped_ ? absl::CancelledError("nobody waits for the check any more") : absl::OkStatus();
}

bool CheckBoard::Check::Report(const std::string& stage, double fraction) {
  board_.Show(upload_, stage, fraction);
  return Wanted().ok();
}

}  // namespace dpar
