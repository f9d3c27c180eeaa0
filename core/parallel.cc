#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"

namespace dpar {

namespace {

struct Failure {
  Mutex mutex;
  std::exception_ptr exception ABSL_GUARDED_BY(mutex);
};

}  // namespace

int HardwareThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void ParallelFor(int64_t count, int threads, const std::function<void(int worker, int64_t index)>& body) {
  std::atomic<int64_t> next = 0;
  Failure failure;
  const auto work = [&](int worker) {
    try {
      for (int64_t index = next++; index < count; index = next++) {
        body(worker, index);
      }
    } catch (...) {
      next = count;
      const MutexLock lock(&failure.mutex);
      failure.exception = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const int useful = static_cast<int>(std::min<int64_t>(threads, count));
    for (int worker = 1; worker < useful; ++worker) {
      others.emplace_back(work, worker);
    }
    work(0);
  }
  const MutexLock lock(&failure.mutex);
  if (failure.exception != nullptr) {
    std::rethrow_exception(failure.exception);
  }
}

}  // namespace dpar
