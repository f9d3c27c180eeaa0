// Preloaded into a server by tests of clocks (tests/crash/faulty_clock.h). Adds to the wall clock the nanoseconds that
// the file DPAR_TEST_CLOCK holds, at every look. The steady clock is left alone. Waits until a time of the wall clock
// are given to the kernel by its own clock, as they would be if that had been set.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t Offset() {
  static const std::atomic<int64_t>* const shared = [] {
    const char* path = std::getenv("DPAR_TEST_CLOCK");
    const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void* const memory = file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    return memory == MAP_FAILED ? nullptr : static_cast<const std::atomic<int64_t>*>(memory);
  }();
  return shared == nullptr ? 0 : shared->load();
}

void Add(timespec& time, int64_t nanoseconds) {
  const int64_t sum = time.tv_nsec + nanoseconds % kSecond;
  time.tv_sec += nanoseconds / kSecond + (sum >= kSecond ? 1 : 0) - (sum < 0 ? 1 : 0);
  time.tv_nsec = (sum % kSecond + kSecond) % kSecond;
}

timespec KernelTime(const timespec& time) {
  timespec own = time;
  Add(own, -Offset());
  if (own.tv_sec < 0) own = {0, 0};
  return own;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) Add(*time, Offset());
  return result;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static const auto real = reinterpret_cast<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)>(
      dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2"));
  // A condition may be one of the steady clock, whose times are small.
  timespec kernel = *until;
  timespec steady = {};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &steady);
  constexpr time_t kYears = 10 * 365 * 86'400;
  if (until->tv_sec > steady.tv_sec + kYears) kernel = KernelTime(*until);
  return real(condition, mutex, &kernel);
}

// Abseil waits by this.
long syscall(long number, ...) noexcept {
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec kernel = {};
  if (number == SYS_futex && (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 && arguments[3] != 0) {
    kernel = KernelTime(*reinterpret_cast<const timespec*>(arguments[3]));
    arguments[3] = reinterpret_cast<long>(&kernel);
  }
  return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

}  // extern "C"
