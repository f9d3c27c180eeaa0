#include "server/machine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {
namespace {

// What an attempt opens at most, and what its files and the store's log grow by at least.
constexpr int kDescriptors = 16;
constexpr size_t kCommonDescriptors = 1024;
constexpr uint64_t kDiskBytes = 16 << 20;
constexpr size_t kMemoryBytes = 64 << 20;

absl::Status Short(absl::string_view of, int error) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   absl::StrCat("the machine is short of ", of, ": ", std::strerror(error)));
}

}  // namespace

absl::Status CheckMachine(const std::string& directory) {
  std::vector<int> opened;
  int error = 0;
  while (error == 0 && opened.size() < kDescriptors) {
    const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    error = descriptor < 0 ? errno : 0;
    if (descriptor >= 0) {
      opened.push_back(descriptor);
    }
  }
  for (const int descriptor : opened) {
    close(descriptor);
  }
  if (error == EMFILE || error == ENFILE) {
    return Short("descriptors", error);
  }
  void* const memory = mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Short("memory", errno);
  }
  munmap(memory, kMemoryBytes);
  struct statvfs disk = {};
  if (statvfs(directory.c_str(), &disk) == 0 && disk.f_bavail * disk.f_frsize < kDiskBytes) {
    return Short("disk", ENOSPC);
  }
  return absl::OkStatus();
}

size_t MaxDescriptors() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : kCommonDescriptors;
}

}  // namespace dpar
