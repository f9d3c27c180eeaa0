#include "tests/end_to_end/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace dpar::e2e {
namespace {

// Runs in the child: only async-signal-safe calls, because the parent has threads.
[[noreturn]] void RunChild(char* const* arguments, char* const* environment, const char* out, const char* err) {
  constexpr int kCannotStart = 127;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int in_fd = open("/dev/null", O_RDONLY);
  const int out_fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int err_fd = open(err, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (in_fd < 0 || out_fd < 0 || err_fd < 0) _exit(kCannotStart);
  if (dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0) _exit(kCannotStart);
  close_range(3, ~0U, 0);
  execve(arguments[0], arguments, environment);
  _exit(kCannotStart);
}

}  // namespace

std::vector<std::string> MergedEnvironment(const Environment& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const bool replaced = added.contains(text.substr(0, text.find('=')));
    if (!absl::StartsWith(text, "DPAR_") && !absl::StartsWith(text, "DPARD_") && !replaced) merged.push_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(absl::StrCat(name, "=", value));
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

TemporaryDirectory::TemporaryDirectory() {
  const char* base = std::getenv("TMPDIR");
  path_ = absl::StrCat(base != nullptr && *base != '\0' ? base : "/tmp", "/dpar-e2e-XXXXXX");
  if (mkdtemp(path_.data()) == nullptr) {
    std::cerr << "cannot make a temporary directory below " << path_ << "\n";
    std::abort();
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Process::Process(const std::vector<std::string>& arguments, const Environment& environment,
                 const std::string& stdout_file, const std::string& stderr_file) {
  std::vector<std::string> owned_arguments = arguments;
  std::vector<std::string> owned_environment = MergedEnvironment(environment);
  const std::vector<char*> argument_pointers = Pointers(owned_arguments);
  const std::vector<char*> environment_pointers = Pointers(owned_environment);
  pid_ = fork();
  if (pid_ == 0) {
    RunChild(argument_pointers.data(), environment_pointers.data(), stdout_file.c_str(), stderr_file.c_str());
  }
  if (pid_ > 0) {
    // glibc 2.36 declares pidfd_open without C linkage.
    pid_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  }
}

Process::~Process() {
  if (!exit_code_.has_value()) {
    Signal(SIGKILL);
    Wait(absl::Seconds(10));
  }
  if (pid_fd_ >= 0) close(pid_fd_);
}

std::optional<int> Process::Wait(absl::Duration timeout) {
  if (exit_code_.has_value() || pid_fd_ < 0) return exit_code_;
  pollfd ended = {.fd = pid_fd_, .events = POLLIN, .revents = 0};
  if (poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) return std::nullopt;
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) return std::nullopt;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

void Process::Signal(int signal) {
  if (pid_ > 0 && !exit_code_.has_value()) kill(pid_, signal);
}

bool Process::stopped() const {
  // pid (name) state ...; the name may hold anything but ends at the last parenthesis.
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid_, "/stat"));
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.substr(name_end, 3) == ") T";
}

CommandResult RunCommand(const std::vector<std::string>& arguments, const Environment& environment,
                         absl::Duration timeout) {
  const TemporaryDirectory output;
  Process process(arguments, environment, output.File("out"), output.File("err"));
  CommandResult result;
  if (const std::optional<int> exit_code = process.Wait(timeout)) {
    result.exit_code = *exit_code;
  } else {
    process.Signal(SIGKILL);
    process.Wait(absl::Seconds(10));
  }
  result.out = ReadFile(output.File("out"));
  result.err = ReadFile(output.File("err"));
  return result;
}

int64_t MemoryOf(pid_t pid, const std::string& field) {
  constexpr int64_t kKibibyte = 1024;
  std::istringstream status(ReadFile(absl::StrCat("/proc/", pid, "/status")));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return kKibibyte * std::stoll(line.substr(field.size() + 1));
  }
  return -1;
}

bool ForgetPeakMemory(pid_t pid) {
  std::ofstream file(absl::StrCat("/proc/", pid, "/clear_refs"));
  file << "5" << std::flush;
  return file.good();
}

std::string BinaryPath(const std::string& name) {
  const char* build = std::getenv("DPAR_BINARY_DIR");
  return absl::StrCat(build != nullptr ? build : ".", "/bin/", name);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::optional<std::string> SharedData(const std::string& name) {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  std::string path = absl::StrCat(source != nullptr ? source : ".", "/../shared/data/", name);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

}  // namespace dpar::e2e
