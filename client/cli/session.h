// One run of `dpar`: its streams, its options, and the connection once a command asks for it.
#ifndef DPAR_CLIENT_CLI_SESSION_H_
#define DPAR_CLIENT_CLI_SESSION_H_

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/errors.h"
#include "client/cli/json.h"
#include "client/cli/terminal.h"
#include "client/sdk/cancellation.h"
#include "client/sdk/connect.h"
#include "client/sdk/connection.h"
#include "core/random/secure_random.h"

namespace dpar {

// The process's streams, terminal and variables, passed in so that a test can run the whole command.
struct Environment {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Terminal terminal;
  Variables variables;
};

struct GlobalOptions {
  ConnectSettings connect;
  bool json = false;
};

class Session {
 public:
  Session(const Environment& environment, GlobalOptions options, std::string command);

  [[nodiscard]] bool json() const { return options_.json; }
  [[nodiscard]] std::istream& in() const { return environment_.in; }
  [[nodiscard]] std::ostream& out() const { return environment_.out; }
  // Prose: notes, progress, warnings.
  [[nodiscard]] std::ostream& err() const { return environment_.err; }
  [[nodiscard]] const Terminal& terminal() const { return environment_.terminal; }
  [[nodiscard]] const Variables& variables() const { return environment_.variables; }
  [[nodiscard]] const ConnectSettings& settings() const { return options_.connect; }
  [[nodiscard]] RandomSource& random() { return random_; }
  // Ends every call of the connection, for commands that Ctrl-C ends as a whole.
  [[nodiscard]] Cancellation& calls() { return calls_; }
  // Whether a user can answer. Never with --json: scripts do not block.
  [[nodiscard]] bool CanAsk() const;
  // Asks "question [Y/n] " or "[y/N] " and takes an empty line as the capital letter. Only if CanAsk.
  [[nodiscard]] bool Ask(absl::string_view question, bool yes_by_default) const;
  // Asks and returns the line that was typed, without blanks around it; empty at the end of the input. Only if CanAsk.
  [[nodiscard]] std::string AskText(absl::string_view question) const;
  // What hints refer to; commands fill in what they are about.
  [[nodiscard]] ErrorContext& error_context() { return error_context_; }
  // Columns for a table: the terminal's, or no limit when stdout goes elsewhere.
  [[nodiscard]] int TableWidth() const;

  // One JSON object {"version":1,"command":...,fields...} as one line on stdout.
  void PrintJson(const Json& fields) const;
  // Says that the command prints many objects, the last one with "terminal": true, also when that one is an error.
  void StreamJson() { streams_json_ = true; }
  // The error on stderr, and as JSON on stdout with --json. Returns the exit code.
  int PrintError(const absl::Status& status);

  // The connection, opened when first asked for; client/sdk/connect.h says where the settings come from.
  absl::StatusOr<Connection*> Connect();
  // "tenants/{t}" of the token; empty for an operator's.
  absl::StatusOr<std::string> Tenant();
  absl::StatusOr<std::string> TenantOrOwn(const std::string& option);
  // The full name of a resource given by id or name. The server is asked for the tenant of an id only.
  absl::StatusOr<std::string> Resolve(absl::string_view collection, const std::string& text);

 private:
  const Environment& environment_;
  GlobalOptions options_;
  ErrorContext error_context_;
  bool streams_json_ = false;
  SecureRandom random_;
  Cancellation calls_;
  std::unique_ptr<Connection> connection_;
  std::optional<std::string> tenant_;
};

// Returns the exit code.
using Command = std::function<absl::StatusOr<int>(Session& session)>;

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_SESSION_H_
