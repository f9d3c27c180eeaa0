#include "client/sdk/cancellation.h"

namespace dpar {

void Cancellation::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* const context : contexts_) {
    context->TryCancel();
  }
}

bool Cancellation::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void Cancellation::Sleep(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&cancelled_), duration);
}

Cancellation::Attachment::Attachment(Cancellation& cancellation, grpc::ClientContext& context)
    : cancellation_(cancellation), context_(context) {
  absl::MutexLock lock(&cancellation_.mutex_);
  cancellation_.contexts_.insert(&context_);
  if (cancellation_.cancelled_) {
    context_.TryCancel();
  }
}

Cancellation::Attachment::~Attachment() {
  absl::MutexLock lock(&cancellation_.mutex_);
  cancellation_.contexts_.erase(&context_);
}

}  // namespace dpar
