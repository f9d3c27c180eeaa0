#include "tests/lab/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace dpar::lab {

absl::Status RunProgram(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    // posix_spawn does not write to them.
    arguments.push_back(const_cast<char*>(argument.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int failure = ::posix_spawnp(&child, command.front().c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return absl::NotFoundError(absl::StrCat("cannot start '", command.front(), "': ", std::strerror(failure)));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return absl::InternalError(absl::StrCat("cannot wait for '", command.front(), "': ", std::strerror(errno)));
    }
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat("'", command.front(), "' ",
                                            WIFEXITED(status)
                                                ? absl::StrCat("ended with exit code ", WEXITSTATUS(status))
                                                : absl::StrCat("was ended by signal ", WTERMSIG(status))));
  }
  return absl::OkStatus();
}

}  // namespace dpar::lab
