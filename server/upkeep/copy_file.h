#ifndef DPAR_SERVER_UPKEEP_COPY_FILE_H_
#define DPAR_SERVER_UPKEEP_COPY_FILE_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/manifest.h"

namespace dpar {

// Reports progress: at most a line a second, none in the first.
class CopyMeter {
 public:
  CopyMeter(std::string what, int64_t total_bytes, std::ostream& out);

  void Add(int64_t bytes) { Reach(done_ + bytes); }
  void Reach(int64_t bytes);

 private:
  const std::string what_;
  const int64_t total_;
  std::ostream& out_;
  const absl::Time start_;
  absl::Time last_;
  int64_t done_ = 0;
};

// For its owner only, atomic and durable; describes the copy under `path`. NOT_FOUND without a source.
absl::StatusOr<BackedUpFile> CopyFileDurably(const std::string& from, const std::string& to, const std::string& path,
                                             CopyMeter& meter);

// Makes a file's bytes and name durable.
absl::Status SyncFile(const std::string& path);

absl::StatusOr<BackedUpFile> DescribeFile(const std::string& file, const std::string& path);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_COPY_FILE_H_
