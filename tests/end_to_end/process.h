// Child processes of a test: started with captured output, waited for with a bound, and never left behind.
#ifndef DPAR_TESTS_END_TO_END_PROCESS_H_
#define DPAR_TESTS_END_TO_END_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace dpar::e2e {

using Environment = std::map<std::string, std::string>;

// A directory of its own below $TMPDIR or /tmp, removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// This process's environment without every DPAR_ and DPARD_ variable, and with `added`; and strings as execve takes
// them.
std::vector<std::string> MergedEnvironment(const Environment& added);
std::vector<char*> Pointers(std::vector<std::string>& strings);

// One child. It is killed when this object goes, and by the kernel when the test program dies.
class Process {
 public:
  // Starts `arguments` (the first is the program's path) with `environment` added by MergedEnvironment. Output is
  // appended to the two files, which may be the same.
  Process(const std::vector<std::string>& arguments, const Environment& environment, const std::string& stdout_file,
          const std::string& stderr_file);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The exit code, or 128 + the signal that ended it; nothing when it still runs after `timeout`.
  std::optional<int> Wait(absl::Duration timeout);
  void Signal(int signal);
  [[nodiscard]] bool started() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Whether SIGSTOP has taken effect.
  [[nodiscard]] bool stopped() const;

 private:
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  std::optional<int> exit_code_;
};

struct CommandResult {
  // As Process::Wait; -1 when it was killed for taking too long.
  int exit_code = -1;
  std::string out;
  std::string err;
};

// Runs a program to its end.
CommandResult RunCommand(const std::vector<std::string>& arguments, const Environment& environment,
                         absl::Duration timeout = absl::Seconds(60));

// Bytes of memory of a process, by a field of /proc/PID/status: "VmRSS" now, "VmHWM" the most since ForgetPeakMemory.
// -1 when there is no such process or field.
int64_t MemoryOf(pid_t pid, const std::string& field);
bool ForgetPeakMemory(pid_t pid);

// $DPAR_BINARY_DIR/bin/`name`.
std::string BinaryPath(const std::string& name);

// A file's bytes; empty when it cannot be read.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// The project's optional public data, ../shared/data/`name`, if it is there.
std::optional<std::string> SharedData(const std::string& name);

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_PROCESS_H_
