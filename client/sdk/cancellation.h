#ifndef DPAR_CLIENT_SDK_CANCELLATION_H_
#define DPAR_CLIENT_SDK_CANCELLATION_H_

#include <grpcpp/client_context.h>

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/mutex.h"

namespace dpar {

// Lets one thread stop the calls and sleeps of others. Thread-safe. Once cancelled it stays so.
class Cancellation {
 public:
  // Cancels the attached calls, those attached later, and every sleep.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);
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
    grpc::ClientContext& context_;
  };

 private:
  mutable Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_CANCELLATION_H_
