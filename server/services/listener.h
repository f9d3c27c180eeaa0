// gRPC's server with every service of the API, and its health service.
#ifndef DPAR_SERVER_SERVICES_LISTENER_H_
#define DPAR_SERVER_SERVICES_LISTENER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "dpar/v1/server.pb.h"
#include "server/auth/signing_keys.h"
#include "server/services/acceptor.h"
#include "server/services/budget_service.h"
#include "server/services/connections.h"
#include "server/services/dataset_service.h"
#include "server/services/operator_service.h"
#include "server/services/server_service.h"
#include "server/services/service_parts.h"
#include "server/services/thread_shortage.h"
#include "server/services/training_service.h"

namespace dpar {

class Listener {
 public:
  // All arguments outlive it. `overview` is served beside its own services.
  Listener(const ServiceParts& parts, v1::ServerInfo info, SigningKeys& keys, grpc::Service& overview,
           ThreadShortage& shortage, Connections& connections);

  [[nodiscard]] const ServerServiceImpl& server_info() const { return server_info_; }
  [[nodiscard]] const BudgetServiceImpl& budgets() const { return budgets_; }
  [[nodiscard]] const TrainingServiceImpl& training() const { return training_; }

  // Accepts calls at HOST:PORT (port 0 picks one); returns the port. UNAVAILABLE when the port is taken.
  absl::StatusOr<int> Start(const std::string& host, int port, int64_t max_message_bytes,
                            const std::shared_ptr<grpc::ServerCredentials>& credentials);

  // Reports NOT_SERVING, so that no new callers come.
  void Drain();
  // Cuts off calls that take longer than a moment.
  void Stop();

 private:
  DatasetServiceImpl datasets_;
  TrainingServiceImpl training_;
  BudgetServiceImpl budgets_;
  OperatorServiceImpl operators_;
  ServerServiceImpl server_info_;
  grpc::Service& overview_;
  ThreadShortage& shortage_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sockets_;
  Acceptor acceptor_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_LISTENER_H_
