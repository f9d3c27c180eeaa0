#include "tests/end_to_end/terminal_command.h"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "absl/time/clock.h"

namespace dpar::e2e {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(90);
constexpr int kReadMilliseconds = 100;
constexpr uint16_t kRows = 24;

winsize SizeOf(int columns) {
  winsize size{};
  size.ws_row = kRows;
  size.ws_col = static_cast<uint16_t>(columns);
  return size;
}

}  // namespace

TerminalCommand::TerminalCommand(const std::vector<std::string>& arguments, const Environment& environment,
                                 int columns) {
  Environment all = {{"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}};
  for (const auto& [name, value] : environment) all[name] = value;
  std::vector<std::string> owned_arguments = arguments;
  std::vector<std::string> owned_environment = MergedEnvironment(all);
  const std::vector<char*> argument_pointers = Pointers(owned_arguments);
  const std::vector<char*> environment_pointers = Pointers(owned_environment);
  const winsize size = SizeOf(columns);
  pid_ = forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execve(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
    _exit(127);
  }
}

TerminalCommand::~TerminalCommand() {
  if (pid_ > 0 && !exit_code_.has_value()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

void TerminalCommand::Type(const std::string& text) {
  [[maybe_unused]] const ssize_t written = write(terminal_, text.data(), text.size());
}

void TerminalCommand::Resize(int columns) {
  const winsize size = SizeOf(columns);
  ioctl(terminal_, TIOCSWINSZ, &size);
}

bool TerminalCommand::ReadSome() {
  pollfd readable = {.fd = terminal_, .events = POLLIN, .revents = 0};
  if (ended_ || poll(&readable, 1, kReadMilliseconds) <= 0) return !ended_;
  std::array<char, 4096> buffer{};
  const ssize_t count = read(terminal_, buffer.data(), buffer.size());
  // The end of a pseudo-terminal whose other side is closed is EIO.
  ended_ = count <= 0 && errno != EINTR;
  if (count > 0) output_.append(buffer.data(), static_cast<size_t>(count));
  return !ended_;
}

bool TerminalCommand::AwaitText(const std::string& text, size_t from) {
  const absl::Time end = absl::Now() + kPatience;
  while (output_.find(text, from) == std::string::npos) {
    if (!ReadSome() || absl::Now() > end) return output_.find(text, from) != std::string::npos;
  }
  return true;
}

std::optional<int> TerminalCommand::AwaitEnd() {
  const absl::Time end = absl::Now() + kPatience;
  while (ReadSome() && absl::Now() < end) {
  }
  int status = 0;
  if (!ended_ || waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

int WidestLine(const std::string& output) {
  int widest = 0;
  int columns = 0;
  for (size_t i = 0; i < output.size(); ++i) {
    const auto byte = static_cast<unsigned char>(output[i]);
    if (byte == '\x1b') {
      // A control sequence takes no column and ends with a letter.
      while (i + 1 < output.size() && std::isalpha(static_cast<unsigned char>(output[i])) == 0) ++i;
    } else if (byte == '\r' || byte == '\n') {
      columns = 0;
    } else if ((byte & 0xC0U) != 0x80U) {
      widest = std::max(widest, ++columns);
    }
  }
  return widest;
}

}  // namespace dpar::e2e
