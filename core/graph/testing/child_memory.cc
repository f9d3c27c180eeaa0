#include "core/graph/testing/child_memory.h"

#include <fstream>
#include <string>

namespace dpar::testing {

int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) {
      return std::stoll(line.substr(6)) * 1024;
    }
  }
  return 0;
}

}  // namespace dpar::testing
