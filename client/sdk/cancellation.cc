#include "client/sdk/cancellation.h"

namespace dpar {

void Cancellation::Cancel() {
  absl::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (context_ != nullptr) {
    context_->TryCancel();
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

void Cancellation::Attach(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  context_ = context;
  if (cancelled_ && context_ != nullptr) {
    context_->TryCancel();
  }
}

Cancellation::Attachment::Attachment(Cancellation& cancellation, grpc::ClientContext& context)
    : cancellation_(cancellation) {
  cancellation_.Attach(&context);
}

Cancellation::Attachment::~Attachment() { cancellation_.Attach(nullptr); }

}  // namespace dpar
