// Where to connect and with which credentials: from arguments, the environment and the user's profiles, in this order.
#ifndef DPAR_CLIENT_SDK_CONNECT_H_
#define DPAR_CLIENT_SDK_CONNECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/sdk/connection.h"
#include "client/sdk/variables.h"

namespace dpar {

// Arguments; what is empty comes from the variable in parentheses, else from the profile.
struct ConnectSettings {
  std::string server = {};       // host:port (DPAR_SERVER; without any, 127.0.0.1:7443)
  std::string ca = {};           // file of the authority that signed the server's certificate (DPAR_CA)
  std::string token_file = {};   // (DPAR_TOKEN_FILE, or DPAR_TOKEN for the token itself)
  std::string client_cert = {};  // files in PEM; with them no token is needed (DPAR_CLIENT_CERT, DPAR_CLIENT_KEY)
  std::string client_key = {};
  // A name of profile.h (DPAR_PROFILE, else the current one). Given here, it comes before the environment.
  std::string profile = {};
};

// host:port alone, also when other settings are missing.
std::string ServerAddress(const ConnectSettings& settings, const Variables& variables);

// Leaves out a profile's authority and token when an argument or a variable names another server. INVALID_FIELD for a
// missing or unreadable setting, UNAUTHENTICATED / TOKEN_MISSING without a token, NOT_FOUND for an unknown profile.
absl::StatusOr<ConnectOptions> ResolveConnection(const ConnectSettings& settings, const Variables& variables);

// Opens the connection. No call is made.
absl::StatusOr<std::unique_ptr<Connection>> Connect(const ConnectSettings& settings = {},
                                                    const Variables& variables = ProcessVariable);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_CONNECT_H_
