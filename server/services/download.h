// Sending a file in pieces.
#ifndef DPAR_SERVER_SERVICES_DOWNLOAD_H_
#define DPAR_SERVER_SERVICES_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// A file, and what the store says of it.
struct ModelFile {
  std::string path;
  int64_t size = 0;
  std::string sha256;
};

// Sends the bytes from `offset` on; the first message carries size and digest, also when no bytes are left. DATA_LOSS /
// STORE_CORRUPT for `resource` when the file is not as long as the store says. `send` returns false when the caller is
// gone.
absl::Status Download(const ModelFile& file, const std::string& resource, int64_t offset,
                      const std::function<bool(const v1::DownloadModelResponse&)>& send);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_DOWNLOAD_H_
