// How long dpar takes to start: build/release/bin/startup_benchmark [RUNS]
//
// The time from its start to its end of `dpar --version`, which declares every command and does nothing else, and of a
// command that needs no server; the least and the median of RUNS (50). Under 30 ms is good.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"

extern char** environ;

namespace {

// Milliseconds of one run; below 0 when it failed.
double Run(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const auto start = std::chrono::steady_clock::now();
  const int error = posix_spawn(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  int status = 0;
  const bool good = error == 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  posix_spawn_file_actions_destroy(&actions);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  return good ? taken.count() : -1;
}

}  // namespace

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 50;
  const std::string dpar = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "dpar";
  const std::vector<std::vector<std::string>> commands = {
      {dpar, "--version"},
      {dpar, "privacy", "epsilon", "--mechanism", "gaussian", "--noise-multiplier", "2", "--delta", "1e-5"}};
  for (const std::vector<std::string>& command : commands) {
    std::vector<double> times;
    for (int i = 0; i < runs; ++i) {
      times.push_back(Run(command));
    }
    std::sort(times.begin(), times.end());
    if (times.front() < 0) {
      std::fputs("dpar could not be run; it must be built beside this program\n", stderr);
      return 1;
    }
    std::fputs(absl::StrFormat("dpar %-12s least %6.1f ms   median %6.1f ms   (%d runs; under 30 ms is good)\n",
                               command[1], times.front(), times[times.size() / 2], runs)
                   .c_str(),
               stdout);
  }
  return 0;
}
