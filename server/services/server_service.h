#ifndef DPAR_SERVER_SERVICES_SERVER_SERVICE_H_
#define DPAR_SERVER_SERVICES_SERVER_SERVICE_H_

#include "dpar/v1/server.grpc.pb.h"
#include "server/auth/signing_keys.h"
#include "server/services/service_parts.h"

namespace dpar {

v1::Limits ToProto(const Limits& limits);

class ServerServiceImpl final : public v1::ServerService::Service {
 public:
  ServerServiceImpl(const ServiceParts& parts, v1::ServerInfo info, SigningKeys& signing_keys)
      : parts_(parts), info_(std::move(info)), signing_keys_(signing_keys) {}

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override;
  grpc::Status WhoAmI(grpc::ServerContext* context, const v1::WhoAmIRequest* request, v1::Identity* response) override;
  grpc::Status ListSigningKeys(grpc::ServerContext* context, const v1::ListSigningKeysRequest* request,
                               v1::ListSigningKeysResponse* response) override;

  absl::Status Answer(const Identity& caller, const v1::WhoAmIRequest& request, v1::Identity& response) const;

 private:
  const ServiceParts& parts_;
  const v1::ServerInfo info_;
  SigningKeys& signing_keys_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_SERVER_SERVICE_H_
