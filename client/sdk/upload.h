#ifndef DPAR_CLIENT_SDK_UPLOAD_H_
#define DPAR_CLIENT_SDK_UPLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/sdk/connection.h"
#include "dpar/v1/dataset.pb.h"

namespace dpar {

struct UploadOptions {
  std::string path;
  v1::OpenUploadRequest open;     // everything but size_bytes, which is the file's
  std::string finish_request_id;  // as OpenUploadRequest.request_id
  int64_t chunk_bytes = 1 << 20;  // at most Limits.max_chunk_bytes
};

// Bytes handed to the connection so far, of all. Falls back when the server lost some.
using UploadProgress = std::function<void(int64_t sent, int64_t total)>;

// Progress of the server's check of the file. Called from a thread of its own while UploadFile waits for the end.
using CheckProgress = std::function<void(const v1::UploadCheck& check)>;

// Uploads a file and hashes it (SHA-256) as it is read. After a transport failure it resumes from the committed offset;
// eight failures without a byte in between end it. Asks four times a second how far the server's check is. CANCELLED by
// the connection's cancellation; the server keeps what it has until the upload expires.
absl::StatusOr<v1::FinishUploadResponse> UploadFile(Connection& connection, const UploadOptions& options,
                                                    const UploadProgress& on_progress, const CheckProgress& on_check);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_UPLOAD_H_
