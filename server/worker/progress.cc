#include "server/worker/progress.h"

namespace dpar {

void ProgressBoard::Update(const std::string& job, const Progress& progress) {
  const absl::MutexLock lock(&mutex_);
  entries_[job] = {++sequence_, progress};
  changed_.SignalAll();
}

void ProgressBoard::Touch(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  entries_[job].sequence = ++sequence_;
  changed_.SignalAll();
}

void ProgressBoard::Remove(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  entries_.erase(job);
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
