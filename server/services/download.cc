#include "server/services/download.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/limits.h"

namespace dpar {
namespace {

absl::Status Corrupt(const std::string& resource) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a model file is missing or has another size",
                   {{"resource", resource}});
}

}  // namespace

absl::Status Download(const ModelFile& file, const std::string& resource, int64_t offset,
                      const std::function<bool(const v1::DownloadModelResponse&)>& send) {
  DPAR_RETURN_IF_ERROR(ValidateRange("offset", offset, int64_t{0}, file.size));
  std::error_code error;
  const uintmax_t actual = std::filesystem::file_size(file.path, error);
  std::ifstream stream(file.path, std::ios::binary);
  if (error || static_cast<int64_t>(actual) != file.size || !stream.seekg(offset)) {
    return Corrupt(resource);
  }
  v1::DownloadModelResponse message;
  message.set_size_bytes(file.size);
  message.set_sha256(file.sha256);
  do {
    const int64_t length = std::min(kDownloadChunkBytes, file.size - offset);
    std::string& data = *message.mutable_data();
    data.resize(static_cast<size_t>(length));
    if (!stream.read(data.data(), length)) {
      return Corrupt(resource);
    }
    if (!send(message)) {
      return absl::CancelledError("the caller went away");
    }
    message.Clear();
    offset += length;
  } while (offset < file.size);
  return absl::OkStatus();
}

}  // namespace dpar
