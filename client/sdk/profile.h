// Named servers with their credentials. Every file has mode 0600.
//   $XDG_CONFIG_HOME/dpar (or ~/.config/dpar), mode 0700
//     profile                    the name of the current one
//     profiles/NAME/server       host:port
//     profiles/NAME/ca.pem       the authority that signed the server's certificate
//     profiles/NAME/token        the bearer token; or
//     profiles/NAME/client.pem, client.key   a client certificate and its key
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

  // Sorted by name.
  [[nodiscard]] std::vector<std::string> List() const;
  // Empty when there is none.
  [[nodiscard]] std::string Current() const;
  // NOT_FOUND / RESOURCE_NOT_FOUND when there is no such profile, or it has no server.
  [[nodiscard]] absl::StatusOr<Profile> Load(const std::string& name) const;

  // Creates or replaces it. Names are ids (core/validate.h).
  [[nodiscard]] absl::Status Save(const std::string& name, const Profile& profile) const;
  // NOT_FOUND when there is no such profile.
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
