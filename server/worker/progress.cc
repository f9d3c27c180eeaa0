#include "server/worker/progress.h"

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
  const absl::MutexLock lock(&mutex_);
  const auto entry = entries_.find(job);
  return entry == entries_.end() ? std::nullopt : entry->second.progress;
}

void ProgressBoard::TellOfStage(const std::optional<Progress>& before, const std::optional<Progress>& after) const {
  const bool ended = before.has_value() && (!after.has_value() || after->stage != before->stage);
  if (observer_ != nullptr && ended) {
    observer_(before->stage, (after.has_value() ? after->stage_start : absl::Now()) - before->stage_start);
  }
}

void ProgressBoard::Update(const std::string& job, const Progress& progress) {
  const absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[job];
  TellOfStage(entry.progress, progress);
  entry = {++sequence_, progress};
  changed_.SignalAll();
}

void ProgressBoard::Touch(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  ++sequence_;
  if (const auto entry = entries_.find(job); entry != entries_.end()) {
    entry->second.sequence = sequence_;
  }
  changed_.SignalAll();
}

void ProgressBoard::Remove(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  if (const auto entry = entries_.find(job); entry != entries_.end()) {
    TellOfStage(entry->second.progress, std::nullopt);
    entries_.erase(entry);
  }
  ++sequence_;
  changed_.SignalAll();
}

ProgressBoard::Snapshot ProgressBoard::Wait(const std::string& job, int64_t after_sequence, absl::Time deadline) {
  const absl::MutexLock lock(&mutex_);
  while (!shutdown_) {
    const auto entry = entries_.find(job);
    const bool changed = entry != entries_.end() ? entry->second.sequence > after_sequence : sequence_ > after_sequence;
    if (changed || changed_.WaitWithDeadline(&mutex_, deadline)) {
      break;
    }
  }
  const auto entry = entries_.find(job);
  if (entry == entries_.end()) {
    return {sequence_, std::nullopt};
  }
  return {entry->second.sequence, entry->second.progress};
}

void ProgressBoard::Shutdown() {
  const absl::MutexLock lock(&mutex_);
  shutdown_ = true;
  changed_.SignalAll();
}

}  // namespace dpar
