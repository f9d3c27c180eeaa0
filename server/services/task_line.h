#ifndef DPAR_SERVER_SERVICES_TASK_LINE_H_
#define DPAR_SERVER_SERVICES_TASK_LINE_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"

namespace dpar {

// Thread-safe. Runs tasks in order on one thread: for work that must not block gRPC's few callback threads.
class TaskLine {
 public:
  using Task = std::function<void()>;

  explicit TaskLine(size_t max_waiting);
  ~TaskLine();
  TaskLine(const TaskLine&) = delete;
  TaskLine& operator=(const TaskLine&) = delete;

  // False, and the task is dropped, when `max_waiting` wait already.
  [[nodiscard]] bool Add(Task task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t max_waiting_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_TASK_LINE_H_
