#include "core/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dpar {

int HardwareThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void ParallelFor(int64_t count, int threads, const std::function<void(int worker, int64_t index)>& body) {
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;  // guarded by mutex
  const auto work = [&](int worker) {
    try {
      for (int64_t index = next++; index < count; index = next++) {
        body(worker, index);
      }
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
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
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

}  // namespace dpar
