// Preloaded into a server by tests of power cuts (tests/crash/power_cut.h). It keeps, beside the server's files, what
// has reached the disk: a copy of each file and a list of each directory as they were at their last sync. It can end
// the process at a sync, fail syncs and writes with EIO, and cut writes short. Only regular files and directories whose
// path begins with DPAR_TEST_LAYER_ROOT are its business.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/crash/file_key.h"

namespace {

using dpar::crash::KeyOf;

uint64_t NumberFrom(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

std::string TextFrom(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

struct Settings {
  const std::string root = TextFrom("DPAR_TEST_LAYER_ROOT");
  const std::string shadow = TextFrom("DPAR_TEST_LAYER_SHADOW");
  const uint64_t cut = NumberFrom("DPAR_TEST_LAYER_CUT");        // the sync at which the power goes; 0 never
  const bool lies = NumberFrom("DPAR_TEST_LAYER_LIES") != 0;     // says of syncs that they are done, and does none
  const uint64_t faults = NumberFrom("DPAR_TEST_LAYER_FAULTS");  // one in so many syncs and writes fails; 0 none
};

const Settings& TheSettings() {
  static const Settings settings;
  return settings;
}

std::recursive_mutex& TheMutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

// SplitMix64, as the project's own libraries do not go into a shared one.
uint64_t Draw(uint64_t below) {
  static uint64_t state = NumberFrom("DPAR_TEST_LAYER_SEED");
  const std::lock_guard<std::recursive_mutex> lock(TheMutex());
  state += 0x9e3779b97f4a7c15;
  uint64_t bits = state;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  return (bits ^ bits >> 31) % below;
}

bool Fails() { return TheSettings().faults > 0 && Draw(TheSettings().faults) == 0; }

template <typename Function>
Function Real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// The type of what is open, 0 unless it lies below the root.
mode_t KindOf(int descriptor) {
  const Settings& settings = TheSettings();
  struct stat facts = {};
  if (settings.root.empty() || fstat(descriptor, &facts) != 0 || !(S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))) {
    return 0;
  }
  char target[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return readlink(link.c_str(), target, sizeof(target) - 1) > 0 &&
                 std::strncmp(target, settings.root.c_str(), settings.root.size()) == 0
             ? facts.st_mode & S_IFMT
             : 0;
}

void WriteAll(int to, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t done = syscall(SYS_write, to, bytes, size);
    if (done <= 0) std::abort();
    bytes += done;
    size -= static_cast<size_t>(done);
  }
}

void CopyFile(int from, int to) {
  char chunk[1 << 16];
  for (off_t at = 0;;) {
    const ssize_t got = syscall(SYS_pread64, from, chunk, sizeof(chunk), at);
    if (got < 0) std::abort();
    if (got == 0) return;
    WriteAll(to, chunk, static_cast<size_t>(got));
    at += got;
  }
}

void ListDirectory(int from, int to) {
  DIR* all = fdopendir(dup(from));
  if (all == nullptr) std::abort();
  for (const dirent* entry = readdir(all); entry != nullptr; entry = readdir(all)) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    const std::string line = KeyOf(from, entry->d_name, AT_SYMLINK_NOFOLLOW) + " " + entry->d_name + "\n";
    WriteAll(to, line.data(), line.size());
  }
  closedir(all);
}

// Keeps what is open here as it is now.
void Keep(int descriptor, mode_t kind) {
  const std::string place = TheSettings().shadow + "/" + KeyOf(descriptor, "", AT_EMPTY_PATH);
  const std::string next = TheSettings().shadow + "/next";
  const std::string self = "/proc/self/fd/" + std::to_string(descriptor);
  const int from = open(self.c_str(), O_RDONLY | O_CLOEXEC);
  const int to = open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (from < 0 || to < 0) std::abort();
  if (kind == S_IFDIR) {
    ListDirectory(from, to);
  } else {
    CopyFile(from, to);
  }
  close(from);
  close(to);
  if (std::rename(next.c_str(), place.c_str()) != 0) std::abort();
}

int Sync(int descriptor, int (*real)(int)) {
  const mode_t kind = KindOf(descriptor);
  if (kind == 0) return real(descriptor);
  // One at a time, so that no older state replaces a newer one. The disk itself is not waited for: no power really
  // goes.
  const std::lock_guard<std::recursive_mutex> lock(TheMutex());
  static uint64_t syncs = 0;
  if (++syncs == TheSettings().cut) {
    kill(getpid(), SIGKILL);
    while (true) pause();
  }
  if (Fails()) {
    errno = EIO;
    return -1;
  }
  if (!TheSettings().lies) Keep(descriptor, kind);
  const std::string count = std::to_string(syncs);
  const int file = open((TheSettings().shadow + "/syncs").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  WriteAll(file, count.data(), count.size());
  close(file);
  return 0;
}

// How much of a write to let through: none fails it.
size_t Allowed(int descriptor, size_t count) {
  if (TheSettings().faults == 0 || count == 0 || KindOf(descriptor) != S_IFREG) return count;
  if (Fails()) return 0;
  return Fails() ? (count + 1) / 2 : count;
}

}  // namespace

extern "C" {

int fsync(int descriptor) {
  static const auto real = Real<int (*)(int)>("fsync");
  return Sync(descriptor, real);
}

int fdatasync(int descriptor) {
  static const auto real = Real<int (*)(int)>("fdatasync");
  return Sync(descriptor, real);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto real = Real<ssize_t (*)(int, const void*, size_t)>("write");
  const size_t allowed = Allowed(descriptor, count);
  if (allowed == 0 && count > 0) {
    errno = EIO;
    return -1;
  }
  return real(descriptor, bytes, allowed);
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off64_t at) {
  static const auto real = Real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  const size_t allowed = Allowed(descriptor, count);
  if (allowed == 0 && count > 0) {
    errno = EIO;
    return -1;
  }
  return real(descriptor, bytes, allowed, at);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t at) {
  return pwrite64(descriptor, bytes, count, at);
}

ssize_t writev(int descriptor, const iovec* pieces, int count) {
  static const auto real = Real<ssize_t (*)(int, const iovec*, int)>("writev");
  if (Allowed(descriptor, 1) == 0) {
    errno = EIO;
    return -1;
  }
  return real(descriptor, pieces, count);
}

}  // extern "C"
