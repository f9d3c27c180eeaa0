// dpar-lab audit: attacks on every mechanism, and the faults that such attacks find. The work is done by two programs
// beside this one (tests/audit): one of the production code, and one with planted faults, which no other program holds.
#include <sys/wait.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "tests/lab/commands.h"
#include "tests/lab/solver_flags.h"

namespace dpar::lab {
namespace {

struct AuditFlags {
  bool quick = false;
  bool full = false;
  uint64_t seed = 1;
  int threads = HardwareThreads();
};

struct ProgramResult {
  bool passed = false;
  std::string text;
};

std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

absl::StatusOr<ProgramResult> RunBeside(const std::string& name, const AuditFlags& flags) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / name).string();
  if (error || !std::filesystem::exists(program)) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                     absl::StrCat("there is no ", name, " beside dpar-lab; build it with the tests"));
  }
  const std::string command = absl::StrCat(Quoted(program), flags.full ? " --full" : " --quick", " --seed ", flags.seed,
                                           " --threads ", flags.threads);
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, absl::StrCat(name, " could not be started"));
  }
  ProgramResult result;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    result.text += static_cast<char>(c);
  }
  const int status = pclose(pipe);
  result.passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return result;
}

absl::StatusOr<CommandOutput> RunAudit(const AuditFlags& flags) {
  DPAR_RETURN_IF_ERROR(ValidateRange("threads", int64_t{flags.threads}, int64_t{1}, kMaxThreads));
  DPAR_ASSIGN_OR_RETURN(const ProgramResult sound, RunBeside("dpar-audit", flags));
  DPAR_ASSIGN_OR_RETURN(const ProgramResult planted, RunBeside("dpar-audit-faults", flags));
  const std::string text = absl::StrCat(sound.text, "\n", planted.text);
  if (!sound.passed || !planted.passed) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, v1::INTERNAL_FAULT,
        absl::StrCat("the audit FAILED: ",
                     sound.passed ? "a planted fault was missed" : "the production code did not pass", "\n", text));
  }
  return CommandOutput{"the audit passed: no claim was exceeded, and every planted fault was caught", text};
}

}  // namespace

void AddAuditCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<AuditFlags>();
  CLI::App* command = app.add_subcommand("audit", "Attack every mechanism, and check that planted faults are found");
  CLI::Option_group* mode = command->add_option_group("mode");
  mode->add_flag("--quick", flags->quick, "The audit of the test suite: about half a minute");
  mode->add_flag("--full", flags->full, "More runs, and whole trainings with canaries: most of an hour");
  mode->require_option(1);
  command->add_option("--seed", flags->seed, "Another seed is another audit")->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads, 1 to 1024")->default_str("all cores");
  command->footer(
      "Example:\n"
      "  dpar-lab audit --quick\n"
      "Two tables on stdout: for each mechanism what the accountant claims and what an attacker proves, and the "
      "planted\n"
      "faults. Exit code 1 when a claim is exceeded, an attack is too weak or a fault is missed; then both are on "
      "stderr.\n"
      "docs/audit.md says how to read them.");
  command->callback([flags, &chosen] { chosen = [flags] { return RunAudit(*flags); }; });
}

}  // namespace dpar::lab
