#include "client/sdk/connect.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/sdk/input_file.h"
#include "client/sdk/profile.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr absl::string_view kDefaultServer = "127.0.0.1:7443";
constexpr absl::string_view kCertificateMark = "-----BEGIN CERTIFICATE-----";
constexpr absl::string_view kKeyMark = "PRIVATE KEY-----";

// Anything else would be refused by gRPC as a malformed header.
bool IsPrintableToken(absl::string_view token) {
  return !token.empty() && std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
}

absl::Status TokenMissing(absl::string_view message) {
  return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_MISSING, message);
}

absl::Status NoPem(absl::string_view field, const std::string& path, absl::string_view what) {
  return InvalidField(field, absl::StrCat("'", path, "' holds no PEM ", what));
}

class Resolver {
 public:
  Resolver(const ConnectSettings& settings, const Variables& variables) : settings_(settings), variables_(variables) {}

  absl::Status LoadProfile() {
    const ProfileStore store(variables_);
    std::string name = settings_.profile.empty() ? variables_("DPAR_PROFILE").value_or("") : settings_.profile;
    const bool asked_for = !name.empty();
    if (!asked_for) {
      name = store.Current();
    }
    if (name.empty()) {
      return absl::OkStatus();
    }
    absl::StatusOr<Profile> profile = store.Load(name);
    if (!profile.ok()) {
      // A current profile whose files are gone counts as none.
      return asked_for ? profile.status() : absl::OkStatus();
    }
    const std::string server = Setting(settings_.server, "DPAR_SERVER");
    if (server.empty() || server == profile->server) {
      profile_ = *std::move(profile);
    }
    return absl::OkStatus();
  }

  [[nodiscard]] std::string Server() const {
    const std::string server = Setting(settings_.server, "DPAR_SERVER");
    if (!server.empty()) {
      return server;
    }
    return profile_.server.empty() ? std::string(kDefaultServer) : profile_.server;
  }

  [[nodiscard]] absl::StatusOr<std::string> CaPem() const {
    const std::string path = Setting(settings_.ca, "DPAR_CA");
    if (path.empty() && !profile_.ca_pem.empty()) {
      return profile_.ca_pem;
    }
    if (path.empty()) {
      return InvalidField("ca",
                          "no certificate authority is given, so the server cannot be told from an impostor: set "
                          "--ca or DPAR_CA to the server's tls/ca.pem");
    }
    DPAR_ASSIGN_OR_RETURN(std::string pem, ReadSmallFile("ca", path));
    return absl::StrContains(pem, kCertificateMark) ? absl::StatusOr<std::string>(std::move(pem))
                                                    : NoPem("ca", path, "certificate");
  }

  absl::Status ReadClientCertificate(ConnectOptions& options) const {
    const std::string certificate = Setting(settings_.client_cert, "DPAR_CLIENT_CERT");
    const std::string key = Setting(settings_.client_key, "DPAR_CLIENT_KEY");
    if (certificate.empty() != key.empty()) {
      return InvalidField("client-cert",
                          "a client certificate and its key go together: set --client-cert and "
                          "--client-key, or DPAR_CLIENT_CERT and DPAR_CLIENT_KEY");
    }
    if (certificate.empty()) {
      options.client_certificate_pem = profile_.client_certificate_pem;
      options.client_key_pem = profile_.client_key_pem;
      return absl::OkStatus();
    }
    DPAR_ASSIGN_OR_RETURN(options.client_certificate_pem, ReadSmallFile("client-cert", certificate));
    DPAR_ASSIGN_OR_RETURN(options.client_key_pem, ReadSmallFile("client-key", key));
    if (!absl::StrContains(options.client_certificate_pem, kCertificateMark)) {
      return NoPem("client-cert", certificate, "certificate");
    }
    return absl::StrContains(options.client_key_pem, kKeyMark) ? absl::OkStatus()
                                                               : NoPem("client-key", key, "private key");
  }

  [[nodiscard]] bool IsTokenGiven() const {
    return !Setting(settings_.token_file, "DPAR_TOKEN_FILE").empty() || Variable("DPAR_TOKEN").has_value() ||
           !profile_.token.empty();
  }

  // A flag comes before any variable; of the variables, the token itself comes first.
  [[nodiscard]] absl::StatusOr<std::string> Token() const {
    std::string token;
    const auto direct = Variable("DPAR_TOKEN");
    const std::string path = Setting(settings_.token_file, "DPAR_TOKEN_FILE");
    if (settings_.token_file.empty() && direct.has_value()) {
      token = *direct;
    } else if (!path.empty()) {
      absl::StatusOr<std::string> content = ReadSmallFile("token-file", path);
      if (!content.ok()) {
        return TokenMissing(absl::StrCat("no token is given: ", content.status().message()));
      }
      token = *std::move(content);
    } else if (!profile_.token.empty()) {
      token = profile_.token;
    } else {
      return TokenMissing("no token is given: log in, or set DPAR_TOKEN_FILE, DPAR_TOKEN or --token-file");
    }
    absl::StripAsciiWhitespace(&token);
    if (!IsPrintableToken(token)) {
      return TokenMissing("the token is empty or holds characters that no token has");
    }
    return token;
  }

 private:
  // A profile that was asked for by argument comes before the environment.
  [[nodiscard]] std::optional<std::string> Variable(const std::string& name) const {
    return settings_.profile.empty() ? variables_(name) : std::nullopt;
  }
  [[nodiscard]] std::string Setting(const std::string& argument, const std::string& variable) const {
    return argument.empty() ? Variable(variable).value_or("") : argument;
  }

  const ConnectSettings& settings_;
  const Variables& variables_;
  Profile profile_;
};

}  // namespace

std::string ServerAddress(const ConnectSettings& settings, const Variables& variables) {
  Resolver resolver(settings, variables);
  // A profile that is missing is reported where it is needed; the address is for messages.
  resolver.LoadProfile().IgnoreError();
  return resolver.Server();
}

absl::StatusOr<ConnectOptions> ResolveConnection(const ConnectSettings& settings, const Variables& variables) {
  Resolver resolver(settings, variables);
  DPAR_RETURN_IF_ERROR(resolver.LoadProfile());
  ConnectOptions options;
  options.server = resolver.Server();
  DPAR_ASSIGN_OR_RETURN(options.ca_pem, resolver.CaPem());
  DPAR_RETURN_IF_ERROR(resolver.ReadClientCertificate(options));
  if (options.client_certificate_pem.empty() || resolver.IsTokenGiven()) {
    DPAR_ASSIGN_OR_RETURN(options.token, resolver.Token());
  }
  return options;
}

absl::StatusOr<std::unique_ptr<Connection>> Connect(const ConnectSettings& settings, const Variables& variables) {
  DPAR_ASSIGN_OR_RETURN(const ConnectOptions options, ResolveConnection(settings, variables));
  return Connection::Open(options);
}

}  // namespace dpar
