#include "server/worker/progress.h"

#include <utility>

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
  return entry == entries_.end() ? std::nullopt : std::optional<Progress>(entry->second);
}

void ProgressBoard::Update(const std::string& job, const Progress& progress) {
  const absl::MutexLock lock(&mutex_);
  entries_[job] = progress;
  Tell(job);
}

void ProgressBoard::Touch(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  Tell(job);
}

void ProgressBoard::Remove(const std::string& job) {
  const absl::MutexLock lock(&mutex_);
  entries_.erase(job);
  Tell(job);
}

void ProgressBoard::Listen(Listener listener) {
  const absl::MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

void ProgressBoard::Tell(const std::string& job) {
  if (listener_) {
    listener_(job);
  }
}

}  // namespace dpar
