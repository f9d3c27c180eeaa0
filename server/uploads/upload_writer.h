#ifndef DPAR_SERVER_UPLOADS_UPLOAD_WRITER_H_
#define DPAR_SERVER_UPLOADS_UPLOAD_WRITER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/database.h"

namespace dpar {

absl::Status LimitExceeded(absl::string_view limit, int64_t maximum);

// UNAVAILABLE / SERVER_UNAVAILABLE.
absl::Status CannotStore();

// Appends to an upload, as its only writer. Append hands a chunk to the kernel; Commit makes it durable.
class UploadWriter {
 public:
  UploadWriter(std::unique_ptr<NameHold> hold, int descriptor, int64_t offset, int64_t size, int64_t max_chunk);
  ~UploadWriter();
  UploadWriter(const UploadWriter&) = delete;
  UploadWriter& operator=(const UploadWriter&) = delete;

  // INVALID_ARGUMENT past the declared size, RESOURCE_EXHAUSTED for a large chunk; then nothing of it is kept.
  absl::Status Append(absl::string_view data);
  // The committed offset. After a disk failure the bytes are uncertain: the upload falls back to this writer's start.
  absl::StatusOr<int64_t> Commit();

 private:
  const std::unique_ptr<NameHold> hold_;
  const int descriptor_;
  const int64_t start_;
  int64_t offset_;
  const int64_t size_;
  const int64_t max_chunk_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_UPLOAD_WRITER_H_
