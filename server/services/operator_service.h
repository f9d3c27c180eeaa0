#ifndef DPAR_SERVER_SERVICES_OPERATOR_SERVICE_H_
#define DPAR_SERVER_SERVICES_OPERATOR_SERVICE_H_

#include "dpar/v1/operator.grpc.pb.h"
#include "server/services/service_parts.h"

namespace dpar {

class OperatorServiceImpl final : public v1::OperatorService::Service {
 public:
  explicit OperatorServiceImpl(const ServiceParts& parts) : parts_(parts) {}

  grpc::Status CreateTenant(grpc::ServerContext* context, const v1::CreateTenantRequest* request,
                            v1::Tenant* response) override;
  grpc::Status ListTenants(grpc::ServerContext* context, const v1::ListTenantsRequest* request,
                           v1::ListTenantsResponse* response) override;
  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override;
  grpc::Status RotateToken(grpc::ServerContext* context, const v1::RotateTokenRequest* request,
                           v1::CreateTokenResponse* response) override;
  grpc::Status ListTokens(grpc::ServerContext* context, const v1::ListTokensRequest* request,
                          v1::ListTokensResponse* response) override;
  grpc::Status RevokeToken(grpc::ServerContext* context, const v1::RevokeTokenRequest* request,
                           v1::Token* response) override;
  grpc::Status SetBudgetCap(grpc::ServerContext* context, const v1::SetBudgetCapRequest* request,
                            v1::Budget* response) override;
  grpc::Status AdjustLedger(grpc::ServerContext* context, const v1::AdjustLedgerRequest* request,
                            v1::LedgerEntry* response) override;

 private:
  grpc::Status AdmitOperator(grpc::ServerContextBase& context, absl::string_view method,
                             const Gate::Handler& handler) const;
  grpc::Status AdmitOperator(grpc::ServerContextBase& context, absl::string_view method, const Gate::SubjectOf& subject,
                             const Gate::Handler& handler) const;
  absl::Status MakeTenant(const v1::CreateTenantRequest& request, v1::Tenant& response);
  absl::Status MakeToken(const Identity& caller, const v1::CreateTokenRequest& request,
                         v1::CreateTokenResponse& response);
  absl::Status Rotate(const Identity& caller, const v1::RotateTokenRequest& request, v1::CreateTokenResponse& response);
  absl::Status SetCapOf(const Identity& caller, const v1::SetBudgetCapRequest& request, v1::Budget& response);

  absl::Status DebitBudget(const Identity& caller, const v1::AdjustLedgerRequest& request, v1::LedgerEntry& response);

  const ServiceParts& parts_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_OPERATOR_SERVICE_H_
