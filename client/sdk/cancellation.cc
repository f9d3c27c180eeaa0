#include "client/sdk/cancellation.h"

namespace dpar {

void Cancellation::Cancel() {
  MutexLock lock(&mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* const context : contexts_) {
    context->TryCancel();
  }
}

bool Cancellation::cancelled() const {
  MutexLock lock(&mutex_);
  return cancelled_;
}

void Cancellation::Sleep(absl::Duration duration) {
  MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(Condition(&cancelled_), duration);
}

Cancellation::Attachment::Attachment(Cancellation& cancellation, grpc::ClientContext& context)
    : cancellation_(cancellation), context_(context) {
  MutexLock lock(&cancellation_.mutex_);
  cancellation_.contexts_.insert(&context_);
  if (cancellation_.cancelled_) {
    context_.TryCancel();
  }
}

Cancellation::Attachment::~Attachment() {
  MutexLock lock(&cancellation_.mutex_);
  cancellation_.contexts_.erase(&context_);
}

}  // namespace dpar
