#ifndef DPAR_CLIENT_SDK_DOWNLOAD_H_
#define DPAR_CLIENT_SDK_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/sdk/connection.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

using DownloadProgress = std::function<void(int64_t received, int64_t total)>;

struct DownloadedFile {
  std::string path;
  int64_t size_bytes = 0;
  std::string sha256;  // lower-case hex
};

// Fetches one artifact into a temporary file beside `path`, checks size and SHA-256 as announced, and renames it.
// Resumes after a broken connection. DATA_LOSS when the bytes differ, CANCELLED by the connection's cancellation.
absl::StatusOr<DownloadedFile> DownloadModel(Connection& connection, const std::string& job,
                                             v1::DownloadModelRequest::Artifact artifact, const std::string& path,
                                             const DownloadProgress& on_progress);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_DOWNLOAD_H_
