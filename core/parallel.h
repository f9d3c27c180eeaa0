// Work spread over threads.
#ifndef DPAR_CORE_PARALLEL_H_
#define DPAR_CORE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace dpar {

int HardwareThreads();  // at least 1

// Calls body(worker, index) once for every index in 0..count-1, on up to `threads` threads, the caller's included.
// `worker`, 0..threads-1, is never used by two threads at once, so it can choose scratch memory. Results must not
// depend on which worker gets which index. An exception of `body` ends the work and reaches the caller.
void ParallelFor(int64_t count, int threads, const std::function<void(int worker, int64_t index)>& body);

}  // namespace dpar

#endif  // DPAR_CORE_PARALLEL_H_
