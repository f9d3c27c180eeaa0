#ifndef DPAR_SERVER_SERVICES_TRAINING_SERVICE_H_
#define DPAR_SERVER_SERVICES_TRAINING_SERVICE_H_

#include "dpar/v1/training.grpc.pb.h"
#include "server/admission/submit.h"
#include "server/fair_line.h"
#include "server/services/service_parts.h"

namespace dpar {

// WatchJob uses gRPC's callback API, so a watcher holds no thread; the other methods are synchronous.
class TrainingServiceImpl final
    : public v1::TrainingService::WithCallbackMethod_WatchJob<v1::TrainingService::Service> {
 public:
  explicit TrainingServiceImpl(const ServiceParts& parts);

  grpc::Status CreateJob(grpc::ServerContext* context, const v1::CreateJobRequest* request, v1::Job* response) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request, v1::Job* response) override;
  grpc::ServerWriteReactor<v1::WatchJobResponse>* WatchJob(grpc::CallbackServerContext* context,
                                                           const v1::WatchJobRequest* request) override;
  grpc::Status DownloadModel(grpc::ServerContext* context, const v1::DownloadModelRequest* request,
                             grpc::ServerWriter<v1::DownloadModelResponse>* writer) override;
  grpc::Status GetCertificate(grpc::ServerContext* context, const v1::GetCertificateRequest* request,
                              v1::Certificate* response) override;

  absl::Status Answer(const Identity& caller, const v1::GetCertificateRequest& request,
                      v1::Certificate& response) const;

 private:
  absl::Status Submit(const grpc::ServerContext& context, const Identity& caller, const v1::CreateJobRequest& request,
                      v1::Job& response);
  // Plans when the tenant's turn comes; stops when the caller goes or the server ends.
  absl::StatusOr<PlannedJob> PlanInTurn(const grpc::ServerContext& context, const v1::CreateJobRequest& request);
  void NoteRefusal(const v1::CreateJobRequest& request, const absl::Status& status) const;
  absl::Status Cancel(const Identity& caller, const v1::CancelJobRequest& request, v1::Job& response);
  absl::Status SendModel(grpc::ServerContext& context, const Identity& caller, const v1::DownloadModelRequest& request,
                         grpc::ServerWriter<v1::DownloadModelResponse>& writer);

  const ServiceParts& parts_;
  StreamLimiter plans_;
  FairLine planning_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_TRAINING_SERVICE_H_
