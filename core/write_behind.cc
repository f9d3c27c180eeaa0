#include "core/write_behind.h"

#include <fcntl.h>

#include <cerrno>

namespace dpar {
namespace {

// Not every kernel and file system takes the hint. Then there is none, and the sync at the end waits for longer.
bool IsDiskFault(int error) { return error == EIO || error == ENOSPC || error == EDQUOT; }

bool SyncRange(int descriptor, int64_t from, int64_t to, unsigned flags) {
  return sync_file_range(descriptor, from, to - from, flags) == 0 || !IsDiskFault(errno);
}

}  // namespace

bool WriteBehind::Reached(int64_t end) {
  if (end - started_ < kWindowBytes) {
    return true;
  }
  if (!SyncRange(descriptor_, started_, end, SYNC_FILE_RANGE_WRITE)) {
    return false;
  }
  const bool written = waited_ == started_ ||
                       SyncRange(descriptor_, waited_, started_,
                                 SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  if (forget_ && waited_ < started_) {
    // A hint as well: pages that are not clean yet stay.
    posix_fadvise(descriptor_, waited_, started_ - waited_, POSIX_FADV_DONTNEED);
  }
  waited_ = started_;
  started_ = end;
  return written;
}

}  // namespace dpar
