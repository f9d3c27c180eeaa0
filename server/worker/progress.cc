#include "server/worker/progress.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/store/message_text.h"

namespace dpar {

std::optional<v1::JobProgress> ToProto(const std::optional<Progress>& progress) {
  if (!progress.has_value()) {
    return std::nullopt;
  }
  v1::JobProgress stored;
  stored.set_stage(progress->stage);
  stored.set_completed(progress->completed);
  stored.set_total(progress->total);
  *stored.mutable_stage_start_time() = ToTimestamp(absl::ToUnixMicros(progress->stage_start));
  stored.set_epsilon_so_far(progress->epsilon_so_far);
  return stored;
}

Progress FromProto(const v1::JobProgress& stored) {
  return {stored.stage(), stored.completed(), stored.total(),
          absl::FromUnixMicros(ToMicroseconds(stored.stage_start_time())), stored.epsilon_so_far()};
}

std::optional<Progress> ProgressBoard::Get(const std::string& job) {
  const MutexLock lock(&mutex_);
  const auto entry = entries_.find(job);
  return entry == entries_.end() ? std::nullopt : std::optional<Progress>(entry->second);
}

void ProgressBoard::TellOfStage(const std::optional<Progress>& before, const std::optional<Progress>& after) const {
  const bool ended = before.has_value() && (!after.has_value() || after->stage != before->stage);
  if (observer_ != nullptr && ended) {
    observer_(*before, (after.has_value() ? after->stage_start : absl::Now()) - before->stage_start);
  }
}

void ProgressBoard::Update(const std::string& job, const Progress& progress) {
  const MutexLock lock(&mutex_);
  std::optional<Progress> before;
  if (const auto entry = entries_.find(job); entry != entries_.end()) {
    before = entry->second;
  }
  TellOfStage(before, progress);
  entries_[job] = progress;
  Tell(job);
}

void ProgressBoard::Touch(const std::string& job) {
  const MutexLock lock(&mutex_);
  Tell(job);
}

void ProgressBoard::Remove(const std::string& job) {
  const MutexLock lock(&mutex_);
  if (const auto entry = entries_.find(job); entry != entries_.end()) {
    TellOfStage(entry->second, std::nullopt);
    entries_.erase(entry);
  }
  Tell(job);
}

void ProgressBoard::Listen(Listener listener) {
  const MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

void ProgressBoard::Tell(const std::string& job) {
  if (listener_) {
    listener_(job);
  }
}

}  // namespace dpar
