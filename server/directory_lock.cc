#include "server/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace dpar {

absl::StatusOr<DirectoryLock> DirectoryLock::Acquire(const std::string& path) {
  DirectoryLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.descriptor_ < 0) {
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  if (flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("another dpard uses this data directory (it holds ", path,
                                                      "); stop it, or choose another --data-dir"));
  }
  return lock;
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

}  // namespace dpar
