// Work spread over threads.
#ifndef DPAR_CORE_PARALLEL_H_
#define DPAR_CORE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace dpar {

// Threads that this machine runs at once, at least 1.
int HardwareThreads();

// Calls body(worker, index) once for every index in 0..count-1, on up to `threads` threads, the caller's among them.
// `worker` is 0..threads-1 and never used by two threads at once, so that it can choose scratch memory. Which worker
// gets which index is not fixed: results must not depend on it. An exception of `body` ends the work and reaches the
// caller.
void ParallelFor(int64_t count, int threads, const std::function<void(int worker, int64_t index)>& body);

}  // namespace dpar

#endif  // DPAR_CORE_PARALLEL_H_
