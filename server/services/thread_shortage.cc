#include "server/services/thread_shortage.h"

#include "core/error.h"
#include "server/services/status.h"

namespace dpar {
namespace {

constexpr std::chrono::seconds kRecent{5};

}  // namespace

class ShortageInterceptor : public grpc::experimental::Interceptor {
 public:
  explicit ShortageInterceptor(ThreadShortage& shortage) : shortage_(shortage) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(grpc::experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      // Our own refusals carry details; gRPC's does not.
      if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && status.error_details().empty()) {
        shortage_.last_ = std::chrono::steady_clock::now().time_since_epoch();
        methods->ModifySendStatus(
            ToGrpcStatus(MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                                   "every thread of the server is taken by other calls; try again")));
      }
    }
    methods->Proceed();
  }

 private:
  ThreadShortage& shortage_;
};

namespace {

class ShortageInterceptors : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit ShortageInterceptors(ThreadShortage& shortage) : shortage_(shortage) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* /*info*/) override {
    return new ShortageInterceptor(shortage_);  // gRPC owns it
  }

 private:
  ThreadShortage& shortage_;
};

}  // namespace

bool ThreadShortage::Recent() const {
  return std::chrono::steady_clock::now().time_since_epoch() - last_.load() < kRecent;
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> ThreadShortage::MakeInterceptors() {
  return std::make_unique<ShortageInterceptors>(*this);
}

}  // namespace dpar
