// Where to connect and what to show there: from arguments, the environment and the user's profiles, in this order.
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

// host:port alone, also where the rest is missing.
std::string ServerAddress(const ConnectSettings& settings, const Variables& variables);

// A profile's authority and token are for its own server: when an argument or a variable names another one, they are
// left out. INVALID_FIELD for what is missing or unreadable, UNAUTHENTICATED / TOKEN_MISSING without a token,
// NOT_FOUND for a profile that does not exist.
absl::StatusOr<ConnectOptions> ResolveConnection(const ConnectSettings& settings, const Variables& variables);

// The same, and opens the connection. No call is made.
absl::StatusOr<std::unique_ptr<Connection>> Connect(const ConnectSettings& settings = {},
                                                    const Variables& variables = ProcessVariable);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_CONNECT_H_
