#ifndef DPAR_SERVER_PAGE_OVERVIEW_SERVICE_H_
#define DPAR_SERVER_PAGE_OVERVIEW_SERVICE_H_

#include "dpar/v1/overview.grpc.pb.h"
#include "server/page/overviews.h"
#include "server/services/service_parts.h"

namespace dpar {

class OverviewServiceImpl final : public v1::OverviewService::Service {
 public:
  OverviewServiceImpl(const ServiceParts& parts, Overviews& overviews) : parts_(parts), overviews_(overviews) {}

  grpc::Status GetOverview(grpc::ServerContext* context, const v1::GetOverviewRequest* request,
                           v1::Overview* response) override;
  grpc::Status ListUsage(grpc::ServerContext* context, const v1::ListUsageRequest* request,
                         v1::ListUsageResponse* response) override;
  grpc::Status GetSpendHistory(grpc::ServerContext* context, const v1::GetSpendHistoryRequest* request,
                               v1::SpendHistory* response) override;
  grpc::Status ListRecentJobs(grpc::ServerContext* context, const v1::ListRecentJobsRequest* request,
                              v1::ListRecentJobsResponse* response) override;
  grpc::Status ListLedgerTail(grpc::ServerContext* context, const v1::ListLedgerTailRequest* request,
                              v1::ListLedgerTailResponse* response) override;

  absl::Status Answer(const Identity& caller, const v1::GetOverviewRequest& request, v1::Overview& response) const;
  absl::Status Answer(const Identity& caller, const v1::ListUsageRequest& request,
                      v1::ListUsageResponse& response) const;
  absl::Status Answer(const Identity& caller, const v1::GetSpendHistoryRequest& request,
                      v1::SpendHistory& response) const;
  absl::Status Answer(const Identity& caller, const v1::ListRecentJobsRequest& request,
                      v1::ListRecentJobsResponse& response) const;
  absl::Status Answer(const Identity& caller, const v1::ListLedgerTailRequest& request,
                      v1::ListLedgerTailResponse& response) const;

 private:
  template <typename Request, typename Response>
  grpc::Status Admit(grpc::ServerContext& context, absl::string_view method, const Request& request,
                     Response& response) const;

  const ServiceParts& parts_;
  Overviews& overviews_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_OVERVIEW_SERVICE_H_
