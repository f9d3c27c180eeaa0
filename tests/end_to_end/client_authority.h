// A certificate authority for clients, made with the commands that README.md shows.
#ifndef DPAR_TESTS_END_TO_END_CLIENT_AUTHORITY_H_
#define DPAR_TESTS_END_TO_END_CLIENT_AUTHORITY_H_

#include <string>

#include "tests/end_to_end/harness.h"
#include "tests/end_to_end/process.h"

namespace dpar::e2e {

class ClientAuthority {
 public:
  ClientAuthority();

  // What --client-ca takes.
  [[nodiscard]] std::string file() const { return directory_.File("client-ca.pem"); }

  // Issues a certificate with these alternative names, as OpenSSL writes them ("URI:spiffe://acme/trainer"; empty is
  // none); its files are {name}.pem and {name}.key.
  ClientCertificate Issue(const std::string& name, const std::string& alternative_names,
                          const std::string& common_name = "client");
  [[nodiscard]] std::string File(const std::string& name) const { return directory_.File(name); }

 private:
  TemporaryDirectory directory_;
};

// Runs openssl; a test failure when it fails.
CommandResult OpenSsl(const std::vector<std::string>& arguments);

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_CLIENT_AUTHORITY_H_
