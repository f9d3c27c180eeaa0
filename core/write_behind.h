// Bytes that go to the disk while more are written.
#ifndef DPAR_CORE_WRITE_BEHIND_H_
#define DPAR_CORE_WRITE_BEHIND_H_

#include <cstdint>

namespace dpar {

// Left alone, the kernel collects what a program writes and takes it to the disk seconds later, all at once: the sync
// at the end waits for gigabytes, and until then they are dirty pages that nobody can have back. This starts the
// writing of each window as soon as it is full, and waits for the one before it. So at most two windows are dirty, the
// disk works while bytes arrive, and whoever writes faster than the disk is slowed down to it. It is no sync: that
// nothing is lost in a power cut is known only after fsync.
class WriteBehind {
 public:
  static constexpr int64_t kWindowBytes = int64_t{8} << 20;

  // Whether the kernel keeps in its cache what is on the disk, for who reads it soon, or is to forget it.
  enum class Cache { kKeep, kForget };

  // For the file behind `descriptor`, of which everything below `offset` is of no concern.
  WriteBehind(int descriptor, int64_t offset, Cache cache)
      : descriptor_(descriptor), forget_(cache == Cache::kForget), started_(offset), waited_(offset) {}

  // Everything below `end` was handed to the kernel. False when the disk failed to take an earlier window, which fsync
  // would then not tell again.
  bool Reached(int64_t end);

 private:
  const int descriptor_;
  const bool forget_;
  int64_t started_;  // below it, writing was started
  int64_t waited_;   // below it, writing has ended
};

}  // namespace dpar

#endif  // DPAR_CORE_WRITE_BEHIND_H_
