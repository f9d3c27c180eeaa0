#include "server/services/task_line.h"

#include <utility>

namespace dpar {

TaskLine::TaskLine(size_t max_waiting) : max_waiting_(max_waiting), thread_([this] { Loop(); }) {}

TaskLine::~TaskLine() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

bool TaskLine::Add(Task task) {
  const MutexLock lock(&mutex_);
  if (waiting_.size() >= max_waiting_) {
    return false;
  }
  waiting_.push_back(std::move(task));
  return true;
}

void TaskLine::Loop() {
  while (true) {
    Task task;
    {
      const MutexLock lock(&mutex_);
      const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !waiting_.empty(); };
      mutex_.Await(Condition(&wanted));
      if (waiting_.empty()) {
        return;
      }
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task();
  }
}

}  // namespace dpar
