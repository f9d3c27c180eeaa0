#ifndef DPAR_SERVER_DIRECTORY_LOCK_H_
#define DPAR_SERVER_DIRECTORY_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace dpar {

// Holds the lock until destroyed or until the process ends.
class DirectoryLock {
 public:
  // FAILED_PRECONDITION when another process holds it.
  static absl::StatusOr<DirectoryLock> Acquire(const std::string& path);

  DirectoryLock(DirectoryLock&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_DIRECTORY_LOCK_H_
