// dpar-lab: research on graphs in local files, without a server, a ledger or a budget.
//
//   main -> *_command.cc       one file for each command (commands.h)
//             -> graph_input   the graph of --graph, whole or its largest component
//             -> solver_flags  alpha, rho, gamma and the like, for every command that solves
//             -> slot_hash_split, option_setting   what accuracy trains on, and with which options
//             -> study         table and sweep: cells on disk (cell, results_file), run on all cores (cell_runner)
//             -> plot.py       pictures, through run_program
//             -> dpar-audit, dpar-audit-faults   programs of tests/audit beside this one, for audit
//             -> core/         solver, mechanisms, accountant, planner, training, inference
//             -> rows_output   rows as JSON or as a table;  row_progress, progress_line: how far the work is
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/error.h"
#include "tests/lab/commands.h"

namespace dpar::lab {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

constexpr int kHelpColumn = 34;

constexpr const char* kDescription =
    "dpar-lab: personalised PageRank, exact and private, and training on graphs in local files. For research: nothing "
    "is charged to any ledger";

constexpr const char* kFooter =
    "A first run:\n"
    "  dpar graph generate -o graph.npz\n"
    "  dpar-lab appr --graph graph.npz --seeds 0,5,9 --json\n"
    "  dpar-lab select --graph graph.npz --mechanism gm --epsilon 1 --delta 1e-5\n"
    "  dpar-lab accuracy --graph graph.npz --method auto --epsilon 1 --delta 1e-5\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 usage.\n"
    "dpar-lab COMMAND --help shows a command's options and an example.";

void Declare(CLI::App& app, Command& chosen) {
  app.name("dpar-lab");
  app.get_formatter()->column_width(kHelpColumn);
  app.set_version_flag("--version", "dpar-lab " DPAR_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.footer(kFooter);
  AddAccuracyCommand(app, chosen);
  AddApprCommand(app, chosen);
  AddAuditCommand(app, chosen);
  AddEmbedCommand(app, chosen);
  AddPlotCommand(app, chosen);
  AddSelectCommand(app, chosen);
  AddSweepCommand(app, chosen);
  AddTableCommand(app, chosen);
}

const CLI::App* ChosenCommand(const CLI::App& app) {
  return app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
}

// The field at fault, where the error is about one; core names it as the flag is named.
std::string FieldOf(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  if (!info.has_value() || info->reason() != v1::ErrorReason_Name(v1::INVALID_FIELD)) {
    return "";
  }
  const auto field = info->metadata().find("field");
  return field == info->metadata().end() ? "" : field->second;
}

// Core says "max_occurrence must be ..."; whoever typed a flag reads "--max-occurrence must be ...".
std::string MessageOf(const absl::Status& status, const CLI::App* command) {
  const std::string message(status.message());
  const std::string field = FieldOf(status);
  const std::string flag = absl::StrCat("--", absl::StrReplaceAll(field, {{"_", "-"}}));
  const bool names_a_flag = command != nullptr && !field.empty() && command->get_option_no_throw(flag) != nullptr;
  return names_a_flag && absl::StartsWith(message, absl::StrCat(field, " "))
             ? absl::StrCat(flag, message.substr(field.size()))
             : message;
}

int ReportUsage(const std::string& message, const CLI::App* command) {
  std::cerr << "dpar-lab: " << message << "\n"
            << "  try: dpar-lab " << (command == nullptr ? "" : command->get_name() + " ") << "--help" << std::endl;
  return kUsage;
}

int ReportError(const absl::Status& status, const CLI::App* command) {
  const std::string message = MessageOf(status, command);
  if (!FieldOf(status).empty()) {
    return ReportUsage(message, command);
  }
  std::cerr << "dpar-lab: " << message << std::endl;
  return kFailed;
}

int Run(int argc, char** argv) {
  CLI::App app(kDescription);
  Command chosen;
  Declare(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)
               ? app.exit(error)
               : ReportUsage(error.what(), ChosenCommand(app));
  }
  const absl::StatusOr<CommandOutput> output = chosen();
  if (!output.ok()) {
    return ReportError(output.status(), ChosenCommand(app));
  }
  std::cerr << "dpar-lab: " << output->note << std::endl;
  std::cout << output->text << std::flush;
  if (!std::cout) {
    std::cerr << "dpar-lab: cannot write to stdout" << std::endl;
    return kFailed;
  }
  return kDone;
}

}  // namespace
}  // namespace dpar::lab

int main(int argc, char** argv) { return dpar::lab::Run(argc, argv); }
