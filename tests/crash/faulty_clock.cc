#include "tests/crash/faulty_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dpar::crash {

FaultyClock::FaultyClock(absl::Duration ahead) {
  const int file = open(directory_.File("clock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(ftruncate(file, sizeof(int64_t)), 0);
  void* const memory = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  EXPECT_NE(memory, MAP_FAILED);
  ahead_ = static_cast<std::atomic<int64_t>*>(memory);
  Set(ahead);
}

FaultyClock::~FaultyClock() { munmap(ahead_, sizeof(int64_t)); }

e2e::Environment FaultyClock::EnvironmentFor() const {
  return {{"LD_PRELOAD", e2e::BinaryPath("../lib/libclock_layer.so")}, {"DPAR_TEST_CLOCK", directory_.File("clock")}};
}

}  // namespace dpar::crash
