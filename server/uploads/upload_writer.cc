#include "server/uploads/upload_writer.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {

absl::Status LimitExceeded(absl::string_view limit, int64_t maximum) {
  return MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
                   absl::StrCat("over the server's limit ", limit, " of ", maximum),
                   {{"limit", std::string(limit)}, {"maximum", absl::StrCat(maximum)}});
}

absl::Status CannotStore() {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "the server could not store the file (its disk may be full); try again later");
}

UploadWriter::UploadWriter(std::unique_ptr<NameHold> hold, int descriptor, int64_t offset, int64_t size,
                           int64_t max_chunk)
    : hold_(std::move(hold)),
      descriptor_(descriptor),
      start_(offset),
      offset_(offset),
      size_(size),
      max_chunk_(max_chunk) {}

UploadWriter::~UploadWriter() { close(descriptor_); }

absl::Status UploadWriter::Append(absl::string_view data) {
  const auto length = static_cast<int64_t>(data.size());
  if (length > max_chunk_) {
    return LimitExceeded("max_chunk_bytes", max_chunk_);
  }
  if (length > size_ - offset_) {
    return InvalidField("data", absl::StrCat("the chunk goes past the declared size of ", size_, " bytes"));
  }
  while (!data.empty()) {
    const ssize_t written = write(descriptor_, data.data(), data.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return CannotStore();
    }
    data.remove_prefix(static_cast<size_t>(written));
    offset_ += written;
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> UploadWriter::Commit() {
  if (fsync(descriptor_) == 0) {
    return offset_;
  }
  // If this fails too, the whole file's digest will not match.
  [[maybe_unused]] const int truncated = ftruncate(descriptor_, start_);
  return CannotStore();
}

}  // namespace dpar
