#ifndef DPAR_SERVER_SERVICES_WATCH_STREAM_H_
#define DPAR_SERVER_SERVICES_WATCH_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dpar/v1/training.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/auth/identity.h"
#include "server/services/gate.h"
#include "server/services/service_parts.h"
#include "server/services/stream_limiter.h"
#include "server/services/watch_hub.h"

namespace dpar {

struct WatchTicket {
  std::string job;
  int64_t after_sequence = 0;
  std::unique_ptr<StreamLimiter::Permit> permit;
};

// A WatchJob call on gRPC's callback API. Owns itself until gRPC is done with the call.
class WatchStream final : public grpc::ServerWriteReactor<v1::WatchJobResponse>, public WatchSink {
 public:
  // Whether the caller may watch, and what. Reads the store.
  using Admission = std::function<absl::StatusOr<WatchTicket>(const Identity& caller)>;

  // The call is authenticated and admitted in parts.admissions.
  static WatchStream* Open(const ServiceParts& parts, grpc::CallbackServerContext& context, Admission admission);

  void OnWriteDone(bool ok) override { parts_.hub.Sent(watch_, ok); }
  void OnCancel() override { parts_.hub.Leave(watch_); }
  void OnDone() override { delete this; }

  void Send(std::shared_ptr<const v1::WatchJobResponse> message) override;
  void Cancel() override { context_.TryCancel(); }
  void End(const absl::Status& status) override;

 private:
  WatchStream(const ServiceParts& parts, grpc::CallbackServerContext& context, Admission admission);
  ~WatchStream() override = default;

  void Admit();
  absl::StatusOr<WatchTicket> RunGuarded() const;

  const ServiceParts& parts_;
  grpc::CallbackServerContext& context_;
  const Admission admission_;
  const std::shared_ptr<Watch> watch_;
  std::optional<CallScope> call_;
  std::unique_ptr<StreamLimiter::Permit> permit_;
  std::shared_ptr<const v1::WatchJobResponse> on_its_way_;  // gRPC reads it until OnWriteDone
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_WATCH_STREAM_H_
