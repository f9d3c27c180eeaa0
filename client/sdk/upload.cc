#include "client/sdk/upload.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/sdk/status.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kFailuresWithoutProgress = 8;
constexpr absl::Duration kCheckPeriod = absl::Milliseconds(250);

// The file, read in chunks from any offset and hashed once in order, however often a part of it is read.
class HashedFile {
 public:
  HashedFile(std::ifstream stream, std::string path, int64_t size)
      : stream_(std::move(stream)), path_(std::move(path)), size_(size) {}

  [[nodiscard]] int64_t size() const { return size_; }

  // Reads up to `length` bytes at `offset`, which must not be beyond what was read before.
  absl::Status Read(int64_t offset, int64_t length, std::string& bytes) {
    bytes.resize(static_cast<size_t>(std::min(length, size_ - offset)));
    stream_.clear();
    stream_.seekg(offset);
    stream_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (stream_.gcount() != static_cast<std::streamsize>(bytes.size())) {
      return absl::AbortedError(absl::StrCat("'", path_, "' became shorter while it was uploaded"));
    }
    const int64_t end = offset + static_cast<int64_t>(bytes.size());
    if (end > hashed_) {
      const auto fresh = static_cast<size_t>(end - hashed_);
      digest_.Add(absl::string_view(bytes).substr(bytes.size() - fresh));
      hashed_ = end;
    }
    return absl::OkStatus();
  }

  // Hashes what the server already holds and this process has not read.
  absl::Status CatchUp(int64_t offset, int64_t chunk) {
    std::string bytes;
    while (hashed_ < offset) {
      DPAR_RETURN_IF_ERROR(Read(hashed_, std::min(chunk, offset - hashed_), bytes));
    }
    return absl::OkStatus();
  }

  std::string Sha256() { return digest_.Hex(); }

 private:
  std::ifstream stream_;
  std::string path_;
  int64_t size_;
  int64_t hashed_ = 0;
  Sha256Stream digest_;
};

absl::StatusOr<HashedFile> OpenFile(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream) {
    return InvalidField("file", absl::StrCat("cannot read '", path, "'"));
  }
  return HashedFile(std::move(stream), path, static_cast<int64_t>(size));
}

// One stream, from `offset` to the end of the file or to the first failure. Returns how many bytes the server holds.
absl::StatusOr<int64_t> WriteStream(Connection& connection, const std::string& upload, int64_t offset,
                                    int64_t chunk_bytes, HashedFile& file, const UploadProgress& on_progress) {
  grpc::ClientContext context;
  connection.Authorise(context);
  const Cancellation::Attachment attachment(connection.cancellation(), context);
  v1::WriteUploadResponse response;
  const auto writer = connection.datasets().WriteUpload(&context, &response);
  v1::WriteUploadRequest request;
  request.set_name(upload);
  request.set_offset(offset);
  absl::Status read;
  while (offset < file.size()) {
    read = file.Read(offset, chunk_bytes, *request.mutable_data());
    if (!read.ok()) {
      context.TryCancel();
      break;
    }
    const auto length = static_cast<int64_t>(request.data().size());
    if (!writer->Write(request)) {
      break;
    }
    request.clear_name();
    request.clear_offset();
    offset += length;
    on_progress(offset, file.size());
  }
  writer->WritesDone();
  const absl::Status written = FromGrpcStatus(writer->Finish());
  DPAR_RETURN_IF_ERROR(read);
  DPAR_RETURN_IF_ERROR(written);
  return response.committed_offset();
}

// After a cut stream the server may still commit what it received, so an offset that moved on may be resumed too.
bool MayResume(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return IsTransportFailure(status) ||
         (info.has_value() && info->reason() == v1::ErrorReason_Name(v1::UPLOAD_OFFSET_MISMATCH));
}

// Waits and asks where to go on after `status`, until the server answers or the failures are used up.
absl::StatusOr<int64_t> CommittedAfter(Connection& connection, const std::string& upload, absl::Status status,
                                       int& failures) {
  while (MayResume(status)) {
    if (connection.cancellation().cancelled()) {
      return absl::CancelledError("the upload was cancelled");
    }
    if (++failures >= kFailuresWithoutProgress) {
      break;
    }
    connection.Pause(connection.DelayBefore(status, failures - 1), connection.cancellation());
    const absl::StatusOr<v1::Upload> now = connection.GetUpload(upload);
    if (now.ok()) {
      return now->committed_offset();
    }
    status = now.status();
  }
  return status;
}

absl::Status WriteAll(Connection& connection, const UploadOptions& options, const v1::Upload& upload, HashedFile& file,
                      const UploadProgress& on_progress) {
  int64_t committed = upload.committed_offset();
  int failures = 0;
  on_progress(committed, file.size());
  while (committed < file.size()) {
    DPAR_RETURN_IF_ERROR(file.CatchUp(committed, options.chunk_bytes));
    absl::StatusOr<int64_t> reached =
        WriteStream(connection, upload.name(), committed, options.chunk_bytes, file, on_progress);
    if (!reached.ok() || *reached <= committed) {
      const absl::Status cause =
          reached.ok() ? absl::UnavailableError("the server took no byte of the upload") : reached.status();
      reached = CommittedAfter(connection, upload.name(), cause, failures);
    }
    DPAR_RETURN_IF_ERROR(reached.status());
    failures = *reached > committed ? 0 : failures;
    committed = *reached;
    on_progress(committed, file.size());
  }
  return file.CatchUp(file.size(), options.chunk_bytes);
}

absl::StatusOr<v1::FinishUploadResponse> FinishWatched(Connection& connection, const v1::FinishUploadRequest& finish,
                                                       const CheckProgress& on_check) {
  Cancellation answered;
  std::thread watcher([&] {
    for (answered.Sleep(kCheckPeriod); !answered.cancelled(); answered.Sleep(kCheckPeriod)) {
      grpc::ClientContext context;
      connection.Authorise(context);
      const Cancellation::Attachment attachment(answered, context);
      v1::GetUploadRequest request;
      request.set_name(finish.name());
      v1::Upload upload;
      // A failure does not matter: the answer to FinishUpload counts.
      if (connection.datasets().GetUpload(&context, request, &upload).ok() && upload.has_check()) {
        on_check(upload.check());
      }
    }
  });
  absl::StatusOr<v1::FinishUploadResponse> response = connection.FinishUpload(finish);
  answered.Cancel();
  watcher.join();
  return response;
}

}  // namespace

absl::StatusOr<v1::FinishUploadResponse> UploadFile(Connection& connection, const UploadOptions& options,
                                                    const UploadProgress& on_progress, const CheckProgress& on_check) {
  DPAR_ASSIGN_OR_RETURN(HashedFile file, OpenFile(options.path));
  v1::OpenUploadRequest open = options.open;
  open.set_size_bytes(file.size());
  DPAR_ASSIGN_OR_RETURN(const v1::Upload upload, connection.OpenUpload(open));
  DPAR_RETURN_IF_ERROR(WriteAll(connection, options, upload, file, on_progress));
  v1::FinishUploadRequest finish;
  finish.set_name(upload.name());
  finish.set_sha256(file.Sha256());
  finish.set_request_id(options.finish_request_id);
  return FinishWatched(connection, finish, on_check);
}

}  // namespace dpar
