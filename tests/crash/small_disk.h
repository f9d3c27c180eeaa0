// A file system of a few megabytes that a test can fill to the last byte.
#ifndef DPAR_TESTS_CRASH_SMALL_DISK_H_
#define DPAR_TESTS_CRASH_SMALL_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

namespace dpar::crash {

// A tmpfs, mounted where only this program and its children see it: it goes with them, however they end.
class SmallDisk {
 public:
  // Mounts it at `path`, which is made. Null, with the reason on stdout, where that is not permitted.
  static std::unique_ptr<SmallDisk> Mount(const std::string& path, int64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Takes all space but `left` bytes, and gives it back.
  void Fill(int64_t left = 0);
  void Free();

 private:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] std::string filler() const { return path_ + "/filler"; }

  const std::string path_;
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_SMALL_DISK_H_
