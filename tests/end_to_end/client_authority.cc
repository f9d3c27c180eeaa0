#include "tests/end_to_end/client_authority.h"

#include "absl/strings/str_cat.h"

namespace dpar::e2e {
namespace {

const std::vector<std::string> kNewKey = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"};

std::vector<std::string> With(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

CommandResult OpenSsl(const std::vector<std::string>& arguments) {
  CommandResult result = RunCommand(With({"/usr/bin/openssl"}, arguments), {});
  EXPECT_EQ(result.exit_code, 0) << arguments.front() << ": " << result.err;
  return result;
}

ClientAuthority::ClientAuthority() {
  OpenSsl(With(With({"req", "-x509"}, kNewKey),
               {"-days", "365", "-subj", "/CN=clients", "-keyout", File("client-ca.key"), "-out", file()}));
}

ClientCertificate ClientAuthority::Issue(const std::string& name, const std::string& alternative_names,
                                         const std::string& common_name) {
  const std::string key = File(name + ".key");
  const std::string request = File(name + ".csr");
  const std::string certificate = File(name + ".pem");
  std::vector<std::string> arguments = With(
      With({"req", "-new"}, kNewKey), {"-subj", absl::StrCat("/CN=", common_name), "-keyout", key, "-out", request});
  if (!alternative_names.empty()) {
    arguments = With(arguments, {"-addext", absl::StrCat("subjectAltName=", alternative_names)});
  }
  OpenSsl(arguments);
  OpenSsl({"x509", "-req", "-in", request, "-CA", file(), "-CAkey", File("client-ca.key"), "-CAcreateserial", "-days",
           "30", "-copy_extensions", "copy", "-out", certificate});
  return {ReadFile(certificate), ReadFile(key)};
}

}  // namespace dpar::e2e
