#include "client/cli/session.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/sdk/names.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr absl::string_view kDefaultServer = "127.0.0.1:7443";
constexpr int kJsonVersion = 1;
constexpr std::streamsize kMaxSecretBytes = 1 << 20;

// A small file, whole. `what` is for the message.
absl::StatusOr<std::string> ReadSmallFile(absl::string_view field, const std::string& path) {
  DPAR_RETURN_IF_ERROR(CheckInputFile(field, path));
  std::ifstream file(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(kMaxSecretBytes), '\0');
  file.read(bytes.data(), kMaxSecretBytes);
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

// Anything else would be refused by gRPC as a malformed header.
bool IsPrintableToken(absl::string_view token) {
  return !token.empty() && std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
}

absl::Status TokenMissing(absl::string_view message) {
  return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_MISSING, message);
}

}  // namespace

Session::Session(const Environment& environment, GlobalOptions options, std::string command)
    : environment_(environment), options_(std::move(options)) {
  error_context_.command = std::move(command);
  error_context_.server = Setting(options_.server, "DPAR_SERVER");
  if (error_context_.server.empty()) {
    error_context_.server = std::string(kDefaultServer);
  }
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

std::string Session::Setting(const std::string& flag, const std::string& variable) const {
  return flag.empty() ? environment_.variables(variable).value_or("") : flag;
}

absl::StatusOr<std::string> Session::ReadCa() const {
  const std::string path = Setting(options_.ca, "DPAR_CA");
  if (path.empty()) {
    return InvalidField("ca",
                        "no certificate authority is given, so the server cannot be told from an impostor: set "
                        "--ca or DPAR_CA to the server's tls/ca.pem");
  }
  DPAR_ASSIGN_OR_RETURN(std::string pem, ReadSmallFile("ca", path));
  if (!absl::StrContains(pem, "-----BEGIN CERTIFICATE-----")) {
    return InvalidField("ca", absl::StrCat("'", path, "' holds no PEM certificate"));
  }
  return pem;
}

absl::StatusOr<std::string> Session::ReadToken() const {
  std::string token;
  // A flag comes before any variable; of the variables, the token itself comes first.
  const auto direct = environment_.variables("DPAR_TOKEN");
  if (options_.token_file.empty() && direct.has_value()) {
    token = *direct;
  } else {
    const std::string path = Setting(options_.token_file, "DPAR_TOKEN_FILE");
    if (path.empty()) {
      return TokenMissing("no token is given: set DPAR_TOKEN_FILE, DPAR_TOKEN or --token-file");
    }
    absl::StatusOr<std::string> content = ReadSmallFile("token-file", path);
    if (!content.ok()) {
      return TokenMissing(absl::StrCat("no token is given: ", content.status().message()));
    }
    token = *std::move(content);
  }
  absl::StripAsciiWhitespace(&token);
  if (!IsPrintableToken(token)) {
    return TokenMissing("the token is empty or holds characters that no token has");
  }
  return token;
}

bool Session::IsTokenGiven() const {
  return !Setting(options_.token_file, "DPAR_TOKEN_FILE").empty() || environment_.variables("DPAR_TOKEN").has_value();
}

absl::Status Session::ReadClientCertificate(ConnectOptions& options) const {
  const std::string certificate = Setting(options_.client_cert, "DPAR_CLIENT_CERT");
  const std::string key = Setting(options_.client_key, "DPAR_CLIENT_KEY");
  if (certificate.empty() != key.empty()) {
    return InvalidField("client-cert",
                        "a client certificate and its key go together: set --client-cert and "
                        "--client-key, or DPAR_CLIENT_CERT and DPAR_CLIENT_KEY");
  }
  if (certificate.empty()) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(options.client_certificate_pem, ReadSmallFile("client-cert", certificate));
  DPAR_ASSIGN_OR_RETURN(options.client_key_pem, ReadSmallFile("client-key", key));
  if (!absl::StrContains(options.client_certificate_pem, "-----BEGIN CERTIFICATE-----")) {
    return InvalidField("client-cert", absl::StrCat("'", certificate, "' holds no PEM certificate"));
  }
  if (!absl::StrContains(options.client_key_pem, "PRIVATE KEY-----")) {
    return InvalidField("client-key", absl::StrCat("'", key, "' holds no PEM private key"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Connection*> Session::Connect() {
  if (connection_ == nullptr) {
    ConnectOptions options;
    options.server = error_context_.server;
    DPAR_ASSIGN_OR_RETURN(options.ca_pem, ReadCa());
    DPAR_RETURN_IF_ERROR(ReadClientCertificate(options));
    if (options.client_certificate_pem.empty() || IsTokenGiven()) {
      DPAR_ASSIGN_OR_RETURN(options.token, ReadToken());
    }
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
