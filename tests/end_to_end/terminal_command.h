// A command on a terminal of its own: a pseudo-terminal that the test reads, types into and resizes.
#ifndef DPAR_TESTS_END_TO_END_TERMINAL_COMMAND_H_
#define DPAR_TESTS_END_TO_END_TERMINAL_COMMAND_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/end_to_end/process.h"

namespace dpar::e2e {

class TerminalCommand {
 public:
  // `environment` as for Process; TERM is xterm and the locale UTF-8 unless it says otherwise.
  TerminalCommand(const std::vector<std::string>& arguments, const Environment& environment, int columns);
  // Killed if it still runs.
  ~TerminalCommand();
  TerminalCommand(const TerminalCommand&) = delete;
  TerminalCommand& operator=(const TerminalCommand&) = delete;

  void Type(const std::string& text);
  void Resize(int columns);
  // Reads until `text` was shown after the first `from` bytes. False when it is not within a minute and a half.
  bool AwaitText(const std::string& text, size_t from = 0);
  // Reads to the end; the exit code as of Process::Wait, or nothing when it does not end within a minute and a half.
  std::optional<int> AwaitEnd();

  // Everything that was shown, escape sequences and all.
  [[nodiscard]] const std::string& output() const { return output_; }

 private:
  // Reads what comes within a tenth of a second. False at the end.
  bool ReadSome();

  pid_t pid_ = -1;
  int terminal_ = -1;
  bool ended_ = false;
  std::optional<int> exit_code_;
  std::string output_;
};

// The most columns that are written between two moves of the cursor to the start of a line.
int WidestLine(const std::string& output);

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_TERMINAL_COMMAND_H_
