#ifndef DPAR_TESTS_CRASH_FILE_KEY_H_
#define DPAR_TESTS_CRASH_FILE_KEY_H_

#include <fcntl.h>
#include <sys/stat.h>

#include <string>

namespace dpar::crash {

// The name of one file or directory for as long as it lives, arguments as of statx(2): numbers of inodes are used
// again, times of birth are not. Begins with "d" or "f"; empty when there is nothing.
inline std::string KeyOf(int directory, const char* name, int flags) {
  struct statx facts = {};
  if (statx(directory, name, flags, STATX_INO | STATX_BTIME | STATX_TYPE, &facts) != 0) {
    return "";
  }
  return std::string(S_ISDIR(facts.stx_mode) ? "d" : "f") + std::to_string(facts.stx_ino) + "-" +
         std::to_string(facts.stx_btime.tv_sec) + "-" + std::to_string(facts.stx_btime.tv_nsec);
}

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_FILE_KEY_H_
