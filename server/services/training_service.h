// TrainingService: jobs, their progress and what they made. training.proto says what each method promises.
#ifndef DPAR_SERVER_SERVICES_TRAINING_SERVICE_H_
#define DPAR_SERVER_SERVICES_TRAINING_SERVICE_H_

#include "dpar/v1/training.grpc.pb.h"
#include "server/services/rooms.h"

namespace dpar {

class TrainingServiceImpl final : public v1::TrainingService::Service {
 public:
  explicit TrainingServiceImpl(const Rooms& rooms) : rooms_(rooms) {}

  grpc::Status CreateJob(grpc::ServerContext* context, const v1::CreateJobRequest* request, v1::Job* response) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request, v1::Job* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override;
  grpc::Status DownloadModel(grpc::ServerContext* context, const v1::DownloadModelRequest* request,
                             grpc::ServerWriter<v1::DownloadModelResponse>* writer) override;
  grpc::Status GetCertificate(grpc::ServerContext* context, const v1::GetCertificateRequest* request,
                              v1::Certificate* response) override;

 private:
  absl::Status Submit(const Identity& caller, const v1::CreateJobRequest& request, v1::Job& response);
  absl::Status Cancel(const Identity& caller, const v1::CancelJobRequest& request, v1::Job& response);
  absl::Status SendModel(grpc::ServerContext& context, const Identity& caller, const v1::DownloadModelRequest& request,
                         grpc::ServerWriter<v1::DownloadModelResponse>& writer);

  const Rooms& rooms_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_TRAINING_SERVICE_H_
