// The bytes of an upload, appended by one writer at a time.
#ifndef DPAR_SERVER_UPLOADS_UPLOAD_WRITER_H_
#define DPAR_SERVER_UPLOADS_UPLOAD_WRITER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/database.h"

namespace dpar {

// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED.
absl::Status LimitExceeded(absl::string_view limit, int64_t maximum);

// UNAVAILABLE / SERVER_UNAVAILABLE: the disk did not take it.
absl::Status CannotStore();

// Appends to one upload, which no other writer can do meanwhile. A chunk is with the kernel when Append returns, and on
// the disk once it is committed.
class UploadWriter {
 public:
  UploadWriter(std::unique_ptr<NameHold> hold, int descriptor, int64_t offset, int64_t size, int64_t max_chunk);
  ~UploadWriter();
  UploadWriter(const UploadWriter&) = delete;
  UploadWriter& operator=(const UploadWriter&) = delete;

  // Appends a chunk. INVALID_ARGUMENT when it goes past the declared size, RESOURCE_EXHAUSTED when it is too large;
  // then nothing of it is kept.
  absl::Status Append(absl::string_view data);
  // Makes what was appended durable and returns the committed offset. When the disk fails, nobody knows which bytes it
  // has, and the upload falls back to where this writer began.
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
