#include "client/cli/app.h"

#include <algorithm>
#include <exception>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "core/error.h"

namespace dpar {
namespace {

constexpr int kHelpColumn = 34;

constexpr const char* kDescription =
    "dpar: train node classifiers on private graphs, under node-level differential privacy";

constexpr const char* kFooter =
    "A first run:\n"
    "  dpar login --server HOST:PORT --ca ca.pem   # asks for your token and keeps it\n"
    "  dpar graph generate -o graph.npz            # a graph to play with\n"
    "  dpar upload graph.npz --name demo           # seals it, with a privacy budget\n"
    "  dpar train demo --epsilon 1                 # trains, and shows how far it is\n"
    "  dpar download JOB -o out                    # model, certificate, public key\n"
    "  dpar verify out/certificate.json --model out/model.npz\n"
    "  dpar predict --model out/model.npz --graph other.npz\n"
    "\n"
    "Flags come before the environment (DPAR_SERVER, DPAR_CA, DPAR_TOKEN_FILE or\n"
    "DPAR_TOKEN, DPAR_CLIENT_CERT, DPAR_CLIENT_KEY, DPAR_PROFILE), and that before the\n"
    "profile that dpar login made. NO_COLOR turns colours off.\n"
    "Exit codes: 0 done, 1 failed, 2 usage, 3 refused by budget, 4 not authorised,\n"
    "5 unavailable, 130 interrupted.\n"
    "dpar COMMAND --help shows a command's options and an example.";

void AddGlobalOptions(CLI::App& app, GlobalOptions& options) {
  ConnectSettings& connect = options.connect;
  app.add_option("--server", connect.server, "Server, HOST:PORT (default 127.0.0.1:7443)");
  app.add_option("--ca", connect.ca, "The server's tls/ca.pem");
  app.add_option("--token-file", connect.token_file, "File with a bearer token");
  app.add_option("--client-cert", connect.client_cert, "Client certificate in PEM, instead of a token");
  app.add_option("--client-key", connect.client_key, "Its key in PEM");
  app.add_option("--profile", connect.profile, "Profile to use (see dpar profile)");
  app.add_flag("--json", options.json, "One JSON object on stdout, prose on stderr");
}

void Declare(CLI::App& app, GlobalOptions& options, Command& chosen) {
  app.name("dpar");
  app.get_formatter()->column_width(kHelpColumn);
  app.set_version_flag("--version", "dpar " DPAR_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer(kFooter);
  AddGlobalOptions(app, options);
  AddProfileCommands(app, chosen);
  AddGraphCommands(app, chosen);
  AddDatasetCommands(app, chosen);
  AddTrainCommand(app, chosen);
  AddJobCommands(app, chosen);
  AddPopulationCommands(app, chosen);
  AddCertificateCommands(app, chosen);
  AddPredictCommand(app, chosen);
  AddEvaluateCommand(app, chosen);
  AddPrivacyCommands(app, chosen);
  AddTokenCommands(app, chosen);
  AddOperatorCommands(app, chosen);
  AddLedgerCommands(app, chosen);
  AddCompletionCommands(app, chosen);
  AddDatasetShortForms(app, chosen);
  AddJobShortForms(app, chosen);
  AddCertificateShortForms(app, chosen);
  AddLedgerShortForms(app, chosen);
}

// "graph inspect": the commands on the line, as far as they were understood.
std::string CommandName(const CLI::App& app) {
  std::string name;
  const CLI::App* level = &app;
  while (!level->get_subcommands().empty()) {
    level = level->get_subcommands().front();
    absl::StrAppend(&name, name.empty() ? "" : " ", level->get_name());
  }
  return name;
}

int ReportUsage(const CLI::App& app, const CLI::ParseError& error, Session& session) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    return app.exit(error, session.out(), session.err());
  }
  return session.PrintError(InvalidField("arguments", error.what()));
}

}  // namespace

int RunDpar(const std::vector<std::string>& arguments, const Environment& environment) {
  CLI::App app(kDescription);
  GlobalOptions options;
  Command chosen;
  Declare(app, options, chosen);
  // CLI11 takes them last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    // The flag may stand after what could not be parsed.
    options.json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
    Session session(environment, options, CommandName(app));
    return ReportUsage(app, error, session);
  }
  Session session(environment, options, CommandName(app));
  const absl::StatusOr<int> exit_code = chosen(session);
  return exit_code.ok() ? *exit_code : session.PrintError(exit_code.status());
}

}  // namespace dpar
