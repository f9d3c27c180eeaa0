// A file on its way to the server, over as many connections as it takes.
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

// How far the server's check of the whole file is. Called from a thread of its own while UploadFile waits for the end.
using CheckProgress = std::function<void(const v1::UploadCheck& check)>;

// Opens, writes and finishes an upload. The SHA-256 is computed from the bytes as they are read. After a transport
// failure it asks for the committed offset and goes on from there; eight failures without a byte in between end it.
// CANCELLED when the connection's cancellation was; the server keeps what it has until the upload expires. While the
// server checks the file, it is asked four times a second how far it is.
absl::StatusOr<v1::FinishUploadResponse> UploadFile(Connection& connection, const UploadOptions& options,
                                                    const UploadProgress& on_progress, const CheckProgress& on_check);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_UPLOAD_H_
