// How one thread stops a stream that another one reads.
#ifndef DPAR_CLIENT_SDK_CANCELLATION_H_
#define DPAR_CLIENT_SDK_CANCELLATION_H_

#include <grpcpp/client_context.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace dpar {

// Thread-safe. Once cancelled it stays so.
class Cancellation {
 public:
  // Cancels the attached call, those attached later, and every sleep.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Sleeps, unless cancelled first.
  void Sleep(absl::Duration duration) ABSL_LOCKS_EXCLUDED(mutex_);

  // Attaches a call for as long as it lives.
  class Attachment {
   public:
    Attachment(Cancellation& cancellation, grpc::ClientContext& context);
    ~Attachment();
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

   private:
    Cancellation& cancellation_;
  };

 private:
  void Attach(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_CANCELLATION_H_
