#include "server/services/listener.h"

#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <initializer_list>
#include <utility>
#include <vector>

#include "core/status_macros.h"
#include "server/limits.h"
#include "server/services/keepalive.h"

namespace dpar {
namespace {

constexpr std::chrono::seconds kShutdownGrace{3};

}  // namespace

Listener::Listener(const ServiceParts& parts, v1::ServerInfo info, SigningKeys& keys, grpc::Service& overview,
                   ThreadShortage& shortage, Connections& connections)
    : datasets_(parts),
      training_(parts),
      budgets_(parts),
      operators_(parts),
      server_info_(parts, std::move(info), keys),
      overview_(overview),
      shortage_(shortage),
      acceptor_(connections) {}

absl::StatusOr<int> Listener::Start(const std::string& host, int port, int64_t max_message_bytes,
                                    const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  // Fixes the stream window, which gRPC would otherwise raise: it bounds what each upload holds in memory.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kStreamWindowBytes);
  // Without the probe, frames would stay at 16 KiB.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameBytes);
  // gRPC inflates a message before it compares its size with the limit, so a stranger's kilobyte could take a gigabyte.
  // Calls that name an encoding are refused with UNIMPLEMENTED; nothing inflates a message that is flagged anyway.
  builder.AddChannelArgument(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  using Sockets = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  sockets_ = builder.experimental().AddExternalConnectionAcceptor(Sockets::FROM_FD, credentials);
  builder.SetMaxReceiveMessageSize(static_cast<int>(max_message_bytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  SetKeepalive({}, builder);
  grpc::ResourceQuota quota("dpard");
  quota.SetMaxThreads(kMaxServerThreads);
  // gRPC takes a message in whole before it compares its size with the limit.
  quota.Resize(kMaxCallBytes);
  builder.SetResourceQuota(quota);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(shortage_.MakeInterceptors());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  for (grpc::Service* service : std::initializer_list<grpc::Service*>{&datasets_, &training_, &budgets_, &operators_,
                                                                      &server_info_, &overview_}) {
    builder.RegisterService(service);
  }
  DPAR_ASSIGN_OR_RETURN(const int bound, acceptor_.Listen(host, port));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::InternalError("gRPC could not start its server");
  }
  server_->GetHealthCheckService()->SetServingStatus(true);
  acceptor_.Start([this](int listener, int socket) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listener;
    connection.fd = socket;
    sockets_->HandleNewConnection(&connection);
  });
  return bound;
}

void Listener::Drain() { server_->GetHealthCheckService()->SetServingStatus(false); }

void Listener::Stop() {
  acceptor_.Stop();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
}

}  // namespace dpar
