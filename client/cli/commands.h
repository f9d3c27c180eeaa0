// The command groups. Each function declares its commands on `app`; when one is parsed, it becomes `chosen`.
#ifndef DPAR_CLIENT_CLI_COMMANDS_H_
#define DPAR_CLIENT_CLI_COMMANDS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/session.h"

namespace dpar {

// Headings of `dpar --help`.
inline constexpr const char* kLocalGroup = "Graphs and results, on this machine";
inline constexpr const char* kDataGroup = "Data on the server";
inline constexpr const char* kTrainingGroup = "Training";
inline constexpr const char* kTokenGroup = "Tokens";
inline constexpr const char* kOperatorGroup = "For operators";

void AddGraphCommands(CLI::App& app, Command& chosen);     // graph generate, inspect, convert, split
void AddConvertCommand(CLI::App& group, Command& chosen);  // graph convert
void AddDatasetCommands(CLI::App& app, Command& chosen);   // upload, datasets
void AddTrainCommand(CLI::App& app, Command& chosen);      // train
void AddJobCommands(CLI::App& app, Command& chosen);       // watch, cancel, jobs
void AddBudgetCommands(CLI::App& app, Command& chosen);    // budget, cap
void AddDownloadCommand(CLI::App& app, Command& chosen);   // download
void AddPredictCommand(CLI::App& app, Command& chosen);    // predict
void AddPrivacyCommands(CLI::App& app, Command& chosen);   // privacy epsilon, delta, calibrate, compare
void AddCompareCommand(CLI::App& group, Command& chosen);  // privacy compare
void AddTokenCommands(CLI::App& app, Command& chosen);     // whoami, token
void AddOperatorCommands(CLI::App& app, Command& chosen);  // tenant

// verify; certificate verify, show, keys
void AddCertificateCommands(CLI::App& app, Command& chosen);

// A command that is only a name for those below it.
inline CLI::App* AddCommandGroup(CLI::App& app, const std::string& name, const std::string& description,
                                 const std::string& heading) {
  CLI::App* group = app.add_subcommand(name, description);
  group->group(heading);
  group->require_subcommand(1);
  group->fallthrough();
  group->footer("dpar " + name + " COMMAND --help shows the options and an example.");
  return group;
}

// The end of a command's --help.
inline std::string Examples(const std::string& examples) {
  return "Example:\n" + examples + "\nGlobal options (--server, --ca, --token-file, --json): see dpar --help.";
}

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_COMMANDS_H_
