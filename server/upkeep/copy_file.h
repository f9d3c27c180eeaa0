// Copies of files that are whole, durable and checked.
#ifndef DPAR_SERVER_UPKEEP_COPY_FILE_H_
#define DPAR_SERVER_UPKEEP_COPY_FILE_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/manifest.h"

namespace dpar {

// Tells whoever waits how far a long copy is: a line a second at most, and none in the first second.
class CopyMeter {
 public:
  CopyMeter(std::string what, int64_t total_bytes, std::ostream& out);

  void Add(int64_t bytes) { Reach(done_ + bytes); }
  // So many are done in all.
  void Reach(int64_t bytes);

 private:
  const std::string what_;
  const int64_t total_;
  std::ostream& out_;
  const absl::Time start_;
  absl::Time last_;
  int64_t done_ = 0;
};

// Copies a file to a place that is made for it, for its owner only, atomically and durably. What was copied, with
// `path` as it is given. NOT_FOUND when there is no such file.
absl::StatusOr<BackedUpFile> CopyFileDurably(const std::string& from, const std::string& to, const std::string& path,
                                             CopyMeter& meter);

// Makes the bytes of a file, and its name, durable.
absl::Status SyncFile(const std::string& path);

// A file's size and digest.
absl::StatusOr<BackedUpFile> DescribeFile(const std::string& file, const std::string& path);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_COPY_FILE_H_
