#ifndef DPAR_SERVER_SERVICES_THREAD_SHORTAGE_H_
#define DPAR_SERVER_SERVICES_THREAD_SHORTAGE_H_

#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <chrono>
#include <memory>

namespace dpar {

// Thread-safe. gRPC answers RESOURCE_EXHAUSTED when no thread is left for a call, which no client retries. Here the
// answer becomes UNAVAILABLE, and readiness learns of it.
class ThreadShortage {
 public:
  // Whether a call was refused within the last five seconds.
  [[nodiscard]] bool Recent() const;
  // For the server's builder. This object outlives the server.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeInterceptors();

 private:
  friend class ShortageInterceptor;

  std::atomic<std::chrono::steady_clock::duration> last_ = std::chrono::steady_clock::duration::min() / 2;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_THREAD_SHORTAGE_H_
