#ifndef DPAR_SERVER_SERVICES_DATASET_SERVICE_H_
#define DPAR_SERVER_SERVICES_DATASET_SERVICE_H_

#include <string>

#include "dpar/v1/dataset.grpc.pb.h"
#include "server/services/service_parts.h"

namespace dpar {

class DatasetServiceImpl final : public v1::DatasetService::Service {
 public:
  explicit DatasetServiceImpl(const ServiceParts& parts) : parts_(parts) {}

  grpc::Status OpenUpload(grpc::ServerContext* context, const v1::OpenUploadRequest* request,
                          v1::Upload* response) override;
  grpc::Status WriteUpload(grpc::ServerContext* context, grpc::ServerReader<v1::WriteUploadRequest>* reader,
                           v1::WriteUploadResponse* response) override;
  grpc::Status GetUpload(grpc::ServerContext* context, const v1::GetUploadRequest* request,
                         v1::Upload* response) override;
  grpc::Status FinishUpload(grpc::ServerContext* context, const v1::FinishUploadRequest* request,
                            v1::FinishUploadResponse* response) override;
  grpc::Status GetDataset(grpc::ServerContext* context, const v1::GetDatasetRequest* request,
                          v1::Dataset* response) override;
  grpc::Status ListDatasets(grpc::ServerContext* context, const v1::ListDatasetsRequest* request,
                            v1::ListDatasetsResponse* response) override;
  grpc::Status DeleteDataset(grpc::ServerContext* context, const v1::DeleteDatasetRequest* request,
                             v1::DeleteDatasetResponse* response) override;

 private:
  absl::Status Receive(const Identity& caller, grpc::ServerContext& context,
                       grpc::ServerReader<v1::WriteUploadRequest>& reader, v1::WriteUploadResponse& response,
                       std::string& upload);
  absl::Status Delete(const Identity& caller, const v1::DeleteDatasetRequest& request,
                      v1::DeleteDatasetResponse& response);

  const ServiceParts& parts_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_DATASET_SERVICE_H_
