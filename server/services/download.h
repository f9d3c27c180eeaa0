#ifndef DPAR_SERVER_SERVICES_DOWNLOAD_H_
#define DPAR_SERVER_SERVICES_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

struct ModelFile {
  std::string path;
  int64_t size = 0;
  std::string sha256;
};

// From `offset`, 0 to the file's size, at most `length` bytes; 0 is the rest.
struct DownloadRange {
  int64_t offset = 0;
  int64_t length = 0;
};

// Returns false when the caller is gone.
using SendChunk = std::function<bool(const v1::DownloadModelResponse&)>;

// Sends the range; the first message, also of an empty range, has size and digest of the whole file. INVALID_ARGUMENT /
// INVALID_FIELD when it starts outside; DATA_LOSS / STORE_CORRUPT when the file's size is not the stored one.
absl::Status Download(const ModelFile& file, const std::string& resource, const DownloadRange& range,
                      const SendChunk& send);
absl::Status DownloadBytes(const std::string& bytes, const std::string& resource, const DownloadRange& range,
                           const SendChunk& send);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_DOWNLOAD_H_
