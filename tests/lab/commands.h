// The commands of dpar-lab. Each function declares its command on `app`; when it is parsed, it becomes `chosen`.
//
// A command computes everything before anything is printed, so that stdout holds the whole result or nothing of it.
#ifndef DPAR_TESTS_LAB_COMMANDS_H_
#define DPAR_TESTS_LAB_COMMANDS_H_

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

namespace dpar::lab {

struct CommandOutput {
  std::string note;  // for stderr: what is private in the result, and what is not
  std::string text;  // for stdout
};
using Command = std::function<absl::StatusOr<CommandOutput>()>;

void AddAccuracyCommand(CLI::App& app, Command& chosen);  // of trained models
void AddApprCommand(CLI::App& app, Command& chosen);      // exact vectors
void AddAuditCommand(CLI::App& app, Command& chosen);     // attacks on the mechanisms
void AddEmbedCommand(CLI::App& app, Command& chosen);     // where models put training nodes
void AddPlotCommand(CLI::App& app, Command& chosen);      // pictures
void AddSelectCommand(CLI::App& app, Command& chosen);    // private rows
void AddSweepCommand(CLI::App& app, Command& chosen);     // accuracy along a parameter
void AddTableCommand(CLI::App& app, Command& chosen);     // the paper's table

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_COMMANDS_H_
