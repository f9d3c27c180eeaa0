#ifndef DPAR_SERVER_SERVICES_BUDGET_SERVICE_H_
#define DPAR_SERVER_SERVICES_BUDGET_SERVICE_H_

#include "dpar/v1/budget.grpc.pb.h"
#include "server/services/service_parts.h"

namespace dpar {

class BudgetServiceImpl final : public v1::BudgetService::Service {
 public:
  explicit BudgetServiceImpl(const ServiceParts& parts) : parts_(parts) {}

  grpc::Status GetBudget(grpc::ServerContext* context, const v1::GetBudgetRequest* request,
                         v1::Budget* response) override;
  grpc::Status ListBudgets(grpc::ServerContext* context, const v1::ListBudgetsRequest* request,
                           v1::ListBudgetsResponse* response) override;
  grpc::Status MergePopulation(grpc::ServerContext* context, const v1::MergePopulationRequest* request,
                               v1::Budget* response) override;
  grpc::Status ListLedgerEntries(grpc::ServerContext* context, const v1::ListLedgerEntriesRequest* request,
                                 v1::ListLedgerEntriesResponse* response) override;
  grpc::Status VerifyChain(grpc::ServerContext* context, const v1::VerifyChainRequest* request,
                           v1::VerifyChainResponse* response) override;

  absl::Status Answer(const Identity& caller, const v1::GetBudgetRequest& request, v1::Budget& response) const;
  absl::Status Answer(const Identity& caller, const v1::MergePopulationRequest& request, v1::Budget& response) const;
  absl::Status Answer(const Identity& caller, const v1::ListLedgerEntriesRequest& request,
                      v1::ListLedgerEntriesResponse& response) const;

 private:
  const ServiceParts& parts_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_BUDGET_SERVICE_H_
