#include "server/services/dataset_service.h"

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "core/error.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/files.h"
#include "server/queue/queue.h"
#include "server/resource_name.h"
#include "server/services/page_size.h"
#include "server/services/subject.h"
#include "server/services/tenant_exists.h"
#include "server/store/datasets.h"
#include "server/store/once.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

// Chunks of at least this size are appended on a thread, if one can be had.
constexpr size_t kAppendedMeanwhile = 64 << 10;
constexpr std::launch kWithAThread = std::launch::async | std::launch::deferred;

// Appends a stream's messages, of which the first was read. Reads the next message while one is written, and no more,
// so flow control slows a caller that is faster than the disk.
absl::Status AppendAll(UploadWriter& writer, v1::WriteUploadRequest& message,
                       grpc::ServerReader<v1::WriteUploadRequest>& reader, StreamWatchdog::Handle& idle) {
  v1::WriteUploadRequest next;
  bool more = true;
  while (more) {
    const bool large = message.data().size() >= kAppendedMeanwhile;
    std::future<absl::Status> appended =
        std::async(large ? kWithAThread : std::launch::deferred, [&] { return writer.Append(message.data()); });
    if (!large) {
      appended.wait();
    }
    more = reader.Read(&next);
    idle.Touch();
    DPAR_RETURN_IF_ERROR(appended.get());
    idle.Touch();
    if (more && (!next.name().empty() || next.offset() != 0)) {
      return InvalidField("name", "only the first message of a stream names the upload and the offset");
    }
    message.Swap(&next);
  }
  return idle.status();
}

}  // namespace

grpc::Status DatasetServiceImpl::OpenUpload(grpc::ServerContext* context, const v1::OpenUploadRequest* request,
                                            v1::Upload* response) {
  const Gate::SubjectOf about = About(*request, *response);
  return parts_.gate.Admit(*context, "DatasetService/OpenUpload", about, [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const TenantName parent, ParseTenantName("parent", request->parent()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, parent.name, parent.name));
    SecureRandom random;
    DPAR_ASSIGN_OR_RETURN(*response, parts_.uploads.Open(*request, absl::Now(), random));
    return absl::OkStatus();
  });
}

grpc::Status DatasetServiceImpl::WriteUpload(grpc::ServerContext* context,
                                             grpc::ServerReader<v1::WriteUploadRequest>* reader,
                                             v1::WriteUploadResponse* response) {
  std::string upload;
  return parts_.gate.Admit(*context, "DatasetService/WriteUpload", About(upload), [&](const Identity& caller) {
    return Receive(caller, *context, *reader, *response, upload);
  });
}

absl::Status DatasetServiceImpl::Receive(const Identity& caller, grpc::ServerContext& context,
                                         grpc::ServerReader<v1::WriteUploadRequest>& reader,
                                         v1::WriteUploadResponse& response, std::string& upload) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<StreamLimiter::Permit> permit, parts_.streams.Enter(caller.tenant));
  std::unique_ptr<StreamWatchdog::Handle> idle = parts_.watchdog.Enter(context);
  v1::WriteUploadRequest message;
  if (!reader.Read(&message)) {
    DPAR_RETURN_IF_ERROR(idle->status());
    return InvalidField("name", "the first message of a stream must name the upload");
  }
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseUploadName("name", message.name()));
  upload = name.name;
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<UploadWriter> writer,
                        parts_.uploads.StartWriting(name.name, message.offset()));
  idle->Touch();
  const absl::Status status = AppendAll(*writer, message, reader, *idle);
  idle.reset();  // the caller waits for the disk from here on
  // Keeps what arrived before a refused message.
  DPAR_ASSIGN_OR_RETURN(const int64_t committed, writer->Commit());
  DPAR_RETURN_IF_ERROR(status);
  response.set_committed_offset(committed);
  return absl::OkStatus();
}

grpc::Status DatasetServiceImpl::GetUpload(grpc::ServerContext* context, const v1::GetUploadRequest* request,
                                           v1::Upload* response) {
  return parts_.gate.Admit(*context, "DatasetService/GetUpload", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseUploadName("name", request->name()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    DPAR_ASSIGN_OR_RETURN(*response, parts_.uploads.Get(name.name));
    return absl::OkStatus();
  });
}

grpc::Status DatasetServiceImpl::FinishUpload(grpc::ServerContext* context, const v1::FinishUploadRequest* request,
                                              v1::FinishUploadResponse* response) {
  const Gate::SubjectOf about = About(*request, *response);
  return parts_.gate.Admit(*context, "DatasetService/FinishUpload", about, [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseUploadName("name", request->name()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    SecureRandom random;
    const auto wanted = [&] { return !context->IsCancelled() && !parts_.stopping.load(); };
    absl::StatusOr<v1::FinishUploadResponse> answer =
        parts_.uploads.Finish(*request, {caller.token, absl::Now()}, random, wanted);
    if (absl::IsCancelled(answer.status()) && parts_.stopping.load()) {
      return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                       "the server is stopping; the upload is open still. Finish it again when the server is back");
    }
    DPAR_ASSIGN_OR_RETURN(*response, std::move(answer));
    return absl::OkStatus();
  });
}

grpc::Status DatasetServiceImpl::GetDataset(grpc::ServerContext* context, const v1::GetDatasetRequest* request,
                                            v1::Dataset* response) {
  return parts_.gate.Admit(*context, "DatasetService/GetDataset", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseDatasetName("name", request->name()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    DPAR_ASSIGN_OR_RETURN(v1::Dataset stored, ReadFrom(parts_.database, [&](Transaction& transaction) {
                            return dpar::GetDataset(transaction, name.name);
                          }));
    *response = std::move(stored);
    return absl::OkStatus();
  });
}

grpc::Status DatasetServiceImpl::ListDatasets(grpc::ServerContext* context, const v1::ListDatasetsRequest* request,
                                              v1::ListDatasetsResponse* response) {
  return parts_.gate.Admit(*context, "DatasetService/ListDatasets", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const TenantName parent, ParseTenantName("parent", request->parent()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, parent.name, parent.name));
    DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request->page_size()));
    DPAR_ASSIGN_OR_RETURN(DatasetPage page,
                          ReadFrom(parts_.database, [&](Transaction& transaction) -> absl::StatusOr<DatasetPage> {
                            DPAR_RETURN_IF_ERROR(TenantExists(transaction, parent));
                            return dpar::ListDatasets(transaction, parent.name, page_size, request->page_token());
                          }));
    response->mutable_datasets()->Assign(page.datasets.begin(), page.datasets.end());
    response->set_next_page_token(page.next_page_token);
    return absl::OkStatus();
  });
}

grpc::Status DatasetServiceImpl::DeleteDataset(grpc::ServerContext* context, const v1::DeleteDatasetRequest* request,
                                               v1::DeleteDatasetResponse* response) {
  return parts_.gate.Admit(*context, "DatasetService/DeleteDataset", About(*request, *response),
                           [&](const Identity& caller) { return Delete(caller, *request, *response); });
}

absl::Status DatasetServiceImpl::Delete(const Identity& caller, const v1::DeleteDatasetRequest& request,
                                        v1::DeleteDatasetResponse& response) {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParseDatasetName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const absl::Time now = absl::Now();
  const RequestKey key = MakeRequestKey(name.tenant, "DeleteDataset", request.request_id(), request);
  DPAR_RETURN_IF_ERROR(Once(parts_.database, key, now, response, [&](Transaction& transaction) -> absl::Status {
    DPAR_RETURN_IF_ERROR(LockDataset(transaction, name.name).status());
    DPAR_ASSIGN_OR_RETURN(const int64_t live, CountLiveJobs(transaction, name.name));
    if (live > 0) {
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::DATASET_IN_USE,
                       "the dataset has jobs that are queued or running; cancel them or wait for them to end",
                       {{"resource", name.name}});
    }
    return MarkDatasetDeleted(transaction, name.name, now);
  }));
  const std::filesystem::path file = parts_.directory.DatasetFile(name.name);
  return RemoveTree(file.parent_path().string());
}

}  // namespace dpar
