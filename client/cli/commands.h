// The command groups. Each function declares its commands on `app`; when one is parsed, it becomes `chosen`.
#ifndef DPAR_CLIENT_CLI_COMMANDS_H_
#define DPAR_CLIENT_CLI_COMMANDS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/session.h"

namespace dpar {

inline constexpr const char* kStartGroup = "Start";
inline constexpr const char* kLocalGroup = "Graphs and results, on this machine";
inline constexpr const char* kDataGroup = "Data on the server";
inline constexpr const char* kTrainingGroup = "Training";
inline constexpr const char* kTokenGroup = "Tokens";
inline constexpr const char* kOperatorGroup = "For operators";
inline constexpr const char* kShortGroup = "Short forms";

void AddProfileCommands(CLI::App& app, Command& chosen);      // login, profile
void AddGraphCommands(CLI::App& app, Command& chosen);        // graph generate, inspect, convert, split
void AddConvertCommand(CLI::App& group, Command& chosen);     // graph convert
void AddSplitCommand(CLI::App& group, Command& chosen);       // graph split
void AddSchemaCommand(CLI::App& group, Command& chosen);      // graph schema
void AddDatasetCommands(CLI::App& app, Command& chosen);      // dataset; upload, datasets
void AddTrainCommand(CLI::App& app, Command& chosen);         // train
void AddJobCommands(CLI::App& app, Command& chosen);          // job; jobs, watch, cancel, download
void AddPopulationCommands(CLI::App& app, Command& chosen);   // population
void AddCertificateCommands(CLI::App& app, Command& chosen);  // certificate; verify
void AddPredictCommand(CLI::App& app, Command& chosen);       // predict
void AddEvaluateCommand(CLI::App& app, Command& chosen);      // evaluate
void AddPrivacyCommands(CLI::App& app, Command& chosen);      // privacy epsilon, delta, calibrate, compare
void AddCompareCommand(CLI::App& group, Command& chosen);     // privacy compare
void AddTokenCommands(CLI::App& app, Command& chosen);        // whoami, token
void AddOperatorCommands(CLI::App& app, Command& chosen);     // tenant
void AddLedgerCommands(CLI::App& app, Command& chosen);       // ledger; cap, debit, spend
void AddCompletionCommands(CLI::App& app, Command& chosen);   // completion, man

// Commands with a short form are declared twice. `words` is how the examples type them: "dataset upload", "upload".
CLI::App* AddUpload(CLI::App& parent, const std::string& name, const std::string& words, Command& chosen);
CLI::App* AddDownload(CLI::App& parent, const std::string& name, const std::string& words, Command& chosen);

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
  return "Example:\n" + examples + "\nGlobal options (--server, --ca, --profile, --json): see dpar --help.";
}

// Short forms of commands with a noun and a verb. Declared last, where --help lists them.
void AddDatasetShortForms(CLI::App& app, Command& chosen);      // upload, datasets
void AddJobShortForms(CLI::App& app, Command& chosen);          // jobs, watch, cancel, download
void AddCertificateShortForms(CLI::App& app, Command& chosen);  // verify
void AddLedgerShortForms(CLI::App& app, Command& chosen);       // spend, cap, debit

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_COMMANDS_H_
