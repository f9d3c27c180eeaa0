// Named servers and what to show them, kept in the user's configuration directory.
//
//   $XDG_CONFIG_HOME/dpar (or ~/.config/dpar), mode 0700
//     profile                    the name of the current one
//     profiles/NAME/server       host:port
//     profiles/NAME/ca.pem       the authority that signed the server's certificate
//     profiles/NAME/token        the bearer token; or
//     profiles/NAME/client.pem   a client certificate, and
//     profiles/NAME/client.key   its key
//
// Every file has mode 0600, so that the token is the user's alone.
#ifndef DPAR_CLIENT_SDK_PROFILE_H_
#define DPAR_CLIENT_SDK_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sdk/variables.h"

namespace dpar {

struct Profile {
  std::string server = {};
  std::string ca_pem = {};
  std::string token = {};
  std::string client_certificate_pem = {};
  std::string client_key_pem = {};
};

class ProfileStore {
 public:
  // Below XDG_CONFIG_HOME or HOME. Without either there is nothing to read, and saving is INVALID_FIELD.
  explicit ProfileStore(const Variables& variables);

  // In the order of their names.
  [[nodiscard]] std::vector<std::string> List() const;
  // The current one's name; empty when there is none.
  [[nodiscard]] std::string Current() const;
  // NOT_FOUND / RESOURCE_NOT_FOUND when there is none of that name, or it has no server.
  [[nodiscard]] absl::StatusOr<Profile> Load(const std::string& name) const;

  // Makes it, or replaces it. Names are ids (core/validate.h).
  [[nodiscard]] absl::Status Save(const std::string& name, const Profile& profile) const;
  // NOT_FOUND when there is none of that name.
  [[nodiscard]] absl::Status Use(const std::string& name) const;
  [[nodiscard]] absl::Status Remove(const std::string& name) const;

  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  [[nodiscard]] std::string PathOf(const std::string& name) const;
  [[nodiscard]] absl::Status CheckExists(const std::string& name) const;

  std::string directory_;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_PROFILE_H_
