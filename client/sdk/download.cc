#include "client/sdk/download.h"

#include "absl/strings/str_cat.h"
#include "client/sdk/status.h"
#include "core/atomic_file.h"
#include "core/certificate/digest.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kFailuresWithoutProgress = 8;
constexpr mode_t kFileMode = 0666;

// One stream, from what the file holds already. `announced` gets size and digest from its first message.
absl::Status ReadStream(Connection& connection, const v1::DownloadModelRequest& request,
                        const DownloadProgress& on_progress, AtomicFile& file, Sha256Stream& digest,
                        DownloadedFile& announced) {
  grpc::ClientContext context;
  connection.Authorise(context);
  const Cancellation::Attachment attachment(connection.cancellation(), context);
  const auto reader = connection.training().DownloadModel(&context, request);
  v1::DownloadModelResponse response;
  absl::Status written;
  bool first = true;
  while (written.ok() && reader->Read(&response)) {
    if (first) {
      announced.size_bytes = response.size_bytes();
      announced.sha256 = response.sha256();
      first = false;
    }
    if (file.size() + static_cast<int64_t>(response.data().size()) > announced.size_bytes) {
      written = absl::DataLossError("the server sent more bytes than it announced");
      break;
    }
    written = file.Append(response.data());
    digest.Add(response.data());
    on_progress(file.size(), announced.size_bytes);
  }
  if (!written.ok()) {
    context.TryCancel();
  }
  const absl::Status ended = FromGrpcStatus(reader->Finish());
  return written.ok() ? ended : written;
}

}  // namespace

absl::StatusOr<DownloadedFile> DownloadModel(Connection& connection, const std::string& job,
                                             v1::DownloadModelRequest::Artifact artifact, const std::string& path,
                                             const DownloadProgress& on_progress) {
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, kFileMode));
  Sha256Stream digest;
  DownloadedFile result;
  result.path = path;
  v1::DownloadModelRequest request;
  request.set_name(job);
  request.set_artifact(artifact);
  for (int failures = 0;;) {
    const int64_t before = file.size();
    request.set_offset(before);
    const absl::Status status = ReadStream(connection, request, on_progress, file, digest, result);
    if (status.ok()) {
      break;
    }
    if (connection.cancellation().cancelled()) {
      return absl::CancelledError("the download was cancelled; nothing was kept");
    }
    failures = file.size() > before ? 1 : failures + 1;
    if (!IsTransportFailure(status) || failures >= kFailuresWithoutProgress) {
      return status;
    }
    connection.Pause(connection.DelayBefore(status, failures - 1), connection.cancellation());
  }
  if (file.size() != result.size_bytes || digest.Hex() != result.sha256) {
    return absl::DataLossError(absl::StrCat("'", path, "' did not arrive intact: its size or SHA-256 is not what the ",
                                            "server announced. Nothing was kept; run the command again."));
  }
  DPAR_RETURN_IF_ERROR(file.Commit());
  return result;
}

}  // namespace dpar
