// Sending a file, or a part of it, in pieces.
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

// The part that is asked for: `offset`, 0 to the file's size, and at most `length` bytes; 0 is the rest.
struct DownloadRange {
  int64_t offset = 0;
  int64_t length = 0;
};

// Returns false when the caller is gone.
using SendChunk = std::function<bool(const v1::DownloadModelResponse&)>;

// Sends the bytes of the range; the first message carries size and digest of the whole file, also when no bytes follow.
// INVALID_ARGUMENT / INVALID_FIELD for a range that does not begin within the file; DATA_LOSS / STORE_CORRUPT for
// `resource` when the file is not as long as the store says.
absl::Status Download(const ModelFile& file, const std::string& resource, const DownloadRange& range,
                      const SendChunk& send);
// The same for bytes that are at hand.
absl::Status DownloadBytes(const std::string& bytes, const std::string& resource, const DownloadRange& range,
                           const SendChunk& send);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_DOWNLOAD_H_
