#include "server/services/download.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <sstream>
#include <system_error>

#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/limits.h"

namespace dpar {
namespace {

absl::Status Corrupt(const std::string& resource) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a model file is missing or damaged",
                   {{"resource", resource}});
}

absl::Status CheckRange(const DownloadRange& range, int64_t size) {
  DPAR_RETURN_IF_ERROR(ValidateRange("offset", range.offset, int64_t{0}, size));
  return ValidateRange("length", range.length, int64_t{0}, std::numeric_limits<int64_t>::max());
}

absl::Status SendRange(std::istream& content, int64_t size, const std::string& sha256, const std::string& resource,
                       const DownloadRange& range, const SendChunk& send) {
  if (!content.seekg(range.offset)) {
    return Corrupt(resource);
  }
  int64_t left = size - range.offset;
  if (range.length > 0) {
    left = std::min(left, range.length);
  }
  v1::DownloadModelResponse message;
  message.set_size_bytes(size);
  message.set_sha256(sha256);
  do {
    const int64_t length = std::min(kDownloadChunkBytes, left);
    std::string& data = *message.mutable_data();
    data.resize(static_cast<size_t>(length));
    if (!content.read(data.data(), length)) {
      return Corrupt(resource);
    }
    if (!send(message)) {
      return absl::CancelledError("the caller went away");
    }
    message.Clear();
    left -= length;
  } while (left > 0);
  return absl::OkStatus();
}

}  // namespace

absl::Status Download(const ModelFile& file, const std::string& resource, const DownloadRange& range,
                      const SendChunk& send) {
  DPAR_RETURN_IF_ERROR(CheckRange(range, file.size));
  std::error_code error;
  const uintmax_t actual = std::filesystem::file_size(file.path, error);
  std::ifstream content(file.path, std::ios::binary);
  if (error || static_cast<int64_t>(actual) != file.size || !content) {
    return Corrupt(resource);
  }
  DPAR_ASSIGN_OR_RETURN(const std::string sha256, Sha256File(file.path));
  if (sha256 != file.sha256) {
    return Corrupt(resource);
  }
  return SendRange(content, file.size, file.sha256, resource, range, send);
}

absl::Status DownloadBytes(const std::string& bytes, const std::string& resource, const DownloadRange& range,
                           const SendChunk& send) {
  const auto size = static_cast<int64_t>(bytes.size());
  DPAR_RETURN_IF_ERROR(CheckRange(range, size));
  std::istringstream content(bytes);
  return SendRange(content, size, Sha256Hex(bytes), resource, range, send);
}

}  // namespace dpar
