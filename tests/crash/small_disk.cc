#include "tests/crash/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace dpar::crash {

std::unique_ptr<SmallDisk> SmallDisk::Mount(const std::string& path, int64_t bytes) {
  std::error_code ignored;
  std::filesystem::create_directories(path, ignored);
  // A mount namespace of this thread's own, which children inherit; nothing that is mounted in it shows outside.
  const bool apart = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  if (!apart || mount("tmpfs", path.c_str(), "tmpfs", 0, absl::StrCat("size=", bytes, ",mode=0700").c_str()) != 0) {
    std::cout << "a small disk cannot be mounted: " << std::strerror(errno) << std::endl;
    return nullptr;
  }
  return std::unique_ptr<SmallDisk>(new SmallDisk(path));
}

SmallDisk::~SmallDisk() { umount2(path_.c_str(), MNT_DETACH); }

void SmallDisk::Fill(int64_t left) {
  struct statvfs space = {};
  const int file = open(filler().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  // Others write meanwhile, so what is free is asked again until there is none.
  for (int64_t size = 0; file >= 0 && statvfs(path_.c_str(), &space) == 0;) {
    const int64_t free = static_cast<int64_t>(space.f_bavail * space.f_frsize) - left;
    if (free <= 0) {
      break;
    }
    if (posix_fallocate(file, size, free) == 0) {
      size += free;
    }
  }
  close(file);
}

void SmallDisk::Free() { unlink(filler().c_str()); }

}  // namespace dpar::crash
