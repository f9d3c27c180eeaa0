#include "client/cli/session.h"

#include "absl/strings/ascii.h"
#include "client/sdk/names.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kJsonVersion = 1;

}  // namespace

Session::Session(const Environment& environment, GlobalOptions options, std::string command)
    : environment_(environment), options_(std::move(options)) {
  error_context_.command = std::move(command);
  error_context_.server = ServerAddress(options_.connect, environment_.variables);
}

bool Session::CanAsk() const {
  return !json() && environment_.terminal.in_is_terminal && environment_.terminal.err_is_terminal;
}

bool Session::Ask(absl::string_view question, bool yes_by_default) const {
  err() << question << (yes_by_default ? " [Y/n] " : " [y/N] ") << std::flush;
  std::string line;
  // The end of the input is a no.
  if (!std::getline(in(), line)) {
    err() << "\n";
    return false;
  }
  const std::string answer = absl::AsciiStrToLower(absl::StripAsciiWhitespace(line));
  return answer.empty() ? yes_by_default : answer == "y" || answer == "yes";
}

std::string Session::AskText(absl::string_view question) const {
  err() << question << " " << std::flush;
  std::string line;
  if (!std::getline(in(), line)) {
    err() << "\n";
  }
  return std::string(absl::StripAsciiWhitespace(line));
}

int Session::TableWidth() const { return environment_.terminal.out_is_terminal ? environment_.terminal.width() : 0; }

void Session::PrintJson(const Json& fields) const {
  Json object = {{"version", kJsonVersion}, {"command", error_context_.command}};
  object.update(fields);
  // File names need not be UTF-8; a name that is not must not end the command.
  environment_.out << object.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

int Session::PrintError(const absl::Status& status) {
  const int exit_code = ExitCodeOf(status);
  const ErrorReport report = DescribeError(status, error_context_);
  const bool colour = environment_.terminal.colour && environment_.terminal.err_is_terminal;
  err() << Coloured(Colour::kRed, "error:", colour) << " " << report.message << "\n";
  for (const std::string& detail : report.details) {
    err() << "  " << detail << "\n";
  }
  for (const std::string& hint : report.hints) {
    err() << Coloured(Colour::kBold, "  try:", colour) << " " << hint << "\n";
  }
  err() << std::flush;
  if (json()) {
    Json object = {{"error", ErrorJson(status, error_context_)}, {"exit_code", exit_code}};
    if (streams_json_) {
      object["terminal"] = true;
    }
    PrintJson(object);
  }
  return exit_code;
}

absl::StatusOr<Connection*> Session::Connect() {
  if (connection_ == nullptr) {
    DPAR_ASSIGN_OR_RETURN(ConnectOptions options, ResolveConnection(options_.connect, environment_.variables));
    options.cancellation = &calls_;
    connection_ = Connection::Open(options);
  }
  return connection_.get();
}

absl::StatusOr<std::string> Session::Tenant() {
  if (!tenant_.has_value()) {
    DPAR_ASSIGN_OR_RETURN(Connection* const connection, Connect());
    DPAR_ASSIGN_OR_RETURN(const v1::Identity identity, connection->WhoAmI());
    tenant_ = identity.tenant();
  }
  return *tenant_;
}

absl::StatusOr<std::string> Session::TenantOrOwn(const std::string& option) {
  if (!option.empty()) {
    return TenantName(option);
  }
  DPAR_ASSIGN_OR_RETURN(std::string tenant, Tenant());
  if (tenant.empty()) {
    return InvalidField("tenant", "this is an operator's token, which belongs to no tenant: name one with --tenant ID");
  }
  return tenant;
}

absl::StatusOr<std::string> Session::Resolve(absl::string_view collection, const std::string& text) {
  std::string tenant;
  if (!IsFullName(text)) {
    // A bad id is refused before the server is asked anything.
    DPAR_RETURN_IF_ERROR(ResourceName(collection, text, "tenants/any").status());
    DPAR_ASSIGN_OR_RETURN(tenant, Tenant());
  }
  return ResourceName(collection, text, tenant);
}

}  // namespace dpar
