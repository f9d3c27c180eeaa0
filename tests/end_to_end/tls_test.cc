// Who is on either end of a connection: versions of TLS, the server's certificate, client certificates.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/client_authority.h"
#include "tests/end_to_end/json_output.h"

namespace dpar::e2e {
namespace {

grpc::Status WhoAmI(const Client& client, v1::Identity* identity = nullptr) {
  const auto answer = client.Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest());
  if (identity != nullptr) *identity = answer.value;
  return answer.status;
}

// What openssl says of a connection of this version. Nothing but the version may stand in its way: OpenSSL itself
// refuses old ones above security level 0.
CommandResult Connect(const TestServer& server, const std::string& version) {
  return RunCommand({"/usr/bin/openssl", "s_client", "-connect", server.address(), "-CAfile", server.ca_file(),
                     "-verify_return_error", "-alpn", "h2", "-cipher", "ALL:@SECLEVEL=0", version},
                    {});
}

class TlsTest : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    authority_ = new ClientAuthority;
    StartServer({"--client-ca", authority_->file(), "--auth-failures-per-minute", "1000000"});
  }
  static void TearDownTestSuite() {
    SharedServerTest::TearDownTestSuite();
    delete authority_;
  }

  static Client Holder(const ClientCertificate& certificate, const std::string& token = "") {
    return {server().MakeChannel({}, certificate), token};
  }
  // A tenant's token for a URI; its name.
  static std::string Bind(const TenantAccess& tenant, const std::string& uri) {
    v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::MEMBER);
    request.mutable_token()->set_certificate_uri(uri);
    const auto made = server().Operator().Call(&v1::OperatorService::Stub::CreateToken, request);
    EXPECT_THAT(made.status, IsOk());
    EXPECT_EQ(made.value.secret(), "");
    EXPECT_EQ(made.value.token().certificate_uri(), uri);
    return made.value.token().name();
  }
  static grpc::Status TryBind(const TenantAccess& tenant, const std::string& uri) {
    v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::MEMBER);
    request.mutable_token()->set_certificate_uri(uri);
    return server().Operator().Call(&v1::OperatorService::Stub::CreateToken, request).status;
  }
  static void Revoke(const std::string& name) {
    v1::RevokeTokenRequest request;
    request.set_name(name);
    ASSERT_THAT(server().Operator().Call(&v1::OperatorService::Stub::RevokeToken, request).status, IsOk());
  }

  static ClientAuthority* authority_;
};

ClientAuthority* TlsTest::authority_ = nullptr;

TEST_F(TlsTest, VersionsBefore12AreRefusedByTheServer) {
  for (const char* version : {"-tls1", "-tls1_1"}) {
    EXPECT_NE(Connect(server(), version).exit_code, 0) << version;
  }
  // It closes such connections without a word to the other side, but says in its log why.
  const auto refusals = [] {
    return std::vector<std::string>(absl::StrSplit(server().log(), "unsupported protocol")).size() - 1;
  };
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (refusals() < 2 && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(refusals(), 2U);
  for (const char* version : {"-tls1_2", "-tls1_3"}) {
    const CommandResult result = Connect(server(), version);
    EXPECT_EQ(result.exit_code, 0) << version << result.err;
    EXPECT_THAT(result.out, ::testing::HasSubstr("Verification: OK")) << version;
    EXPECT_THAT(result.out, ::testing::HasSubstr("ALPN protocol: h2")) << version;
  }
  EXPECT_THAT(Connect(server(), "-tls1_2").out, ::testing::HasSubstr("TLSv1.2"));
  EXPECT_THAT(Connect(server(), "-tls1_3").out, ::testing::HasSubstr("TLSv1.3"));
}

TEST_F(TlsTest, ACertificateWithATokensUriNeedsNoToken) {
  const TenantAccess tenant = server().NewTenant();
  const std::string token = Bind(tenant, "spiffe://acme/trainer");
  const ClientCertificate certificate = authority_->Issue("trainer", "URI:spiffe://acme/trainer");
  const Client holder = Holder(certificate);
  v1::Identity identity;
  ASSERT_THAT(WhoAmI(holder, &identity), IsOk());
  EXPECT_EQ(identity.token(), token);
  EXPECT_EQ(identity.tenant(), tenant.name);
  EXPECT_EQ(identity.role(), v1::MEMBER);

  const std::vector<std::string> command = {BinaryPath("dpar"),
                                            "whoami",
                                            "--json",
                                            "--client-cert",
                                            authority_->File("trainer.pem"),
                                            "--client-key",
                                            authority_->File("trainer.key")};
  const CommandResult shown =
      RunCommand(command, {{"DPAR_SERVER", server().address()}, {"DPAR_CA", server().ca_file()}});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(JsonLines(shown, "whoami").at(0)["identity"]["token"], token);

  Revoke(token);
  EXPECT_THAT(WhoAmI(holder), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
}

TEST_F(TlsTest, ALoginKeepsEitherACertificateOrATokenAndUnderTheProfileThatIsNamed) {
  const TenantAccess tenant = server().NewTenant();
  Bind(tenant, "spiffe://acme/login");
  authority_->Issue("login", "URI:spiffe://acme/login");
  Environment environment = {{"DPAR_SERVER", server().address()},
                             {"DPAR_CA", server().ca_file()},
                             {"DPAR_CLIENT_CERT", authority_->File("login.pem")},
                             {"DPAR_CLIENT_KEY", authority_->File("login.key")},
                             {"XDG_CONFIG_HOME", server().Scratch("login-config")}};
  const auto login = [&](const std::string& token, const std::string& arguments) {
    return RunCommand(
        {"/bin/bash", "-c", absl::StrCat("echo '", token, "' | '", BinaryPath("dpar"), "' login --json ", arguments)},
        environment);
  };
  const auto kept = [&](const std::string& file) {
    return std::filesystem::exists(server().Scratch("login-config/dpar/profiles/") + file);
  };
  const CommandResult held = login("", "--profile held");
  ASSERT_EQ(held.exit_code, 0) << held.err;
  EXPECT_EQ(JsonLines(held, "login").at(0)["identity"]["role"], "member");
  EXPECT_TRUE(kept("held/client.key"));
  EXPECT_FALSE(kept("held/token"));

  // The current profile gives the server and its authority, and nothing that says who one is.
  environment = {{"XDG_CONFIG_HOME", server().Scratch("login-config")}};
  const CommandResult other = login(tenant.owner_token, "--name other");
  ASSERT_EQ(other.exit_code, 0) << other.err;
  EXPECT_TRUE(kept("other/token"));
  EXPECT_FALSE(kept("other/client.pem"));
  EXPECT_FALSE(kept("other/client.key"));

  const CommandResult again = login(tenant.owner_token, "--profile held");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(JsonLines(again, "login").at(0)["profile"], "held");
  EXPECT_TRUE(kept("held/token"));
  EXPECT_FALSE(kept("held/client.key"));
  EXPECT_FALSE(kept("default/server"));
}

TEST_F(TlsTest, AHeaderIsJudgedAlone) {
  const TenantAccess tenant = server().NewTenant();
  Bind(tenant, "spiffe://acme/with-header");
  const ClientCertificate certificate = authority_->Issue("with-header", "URI:spiffe://acme/with-header");
  v1::Identity identity;
  ASSERT_THAT(WhoAmI(Holder(certificate, server().operator_token()), &identity), IsOk());
  EXPECT_EQ(identity.role(), v1::OPERATOR);
  EXPECT_THAT(WhoAmI(Holder(certificate, "nonsense")), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
}

TEST_F(TlsTest, WithoutACertificateATokenWorksAsEver) {
  EXPECT_THAT(WhoAmI(server().Operator()), IsOk());
  EXPECT_THAT(WhoAmI(server().MakeClient("")), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING));
}

TEST_F(TlsTest, OnlyAUriIsTakenForAUri) {
  const TenantAccess tenant = server().NewTenant();
  const std::string uri = "spiffe://acme/only-uri";
  Bind(tenant, uri);
  EXPECT_THAT(WhoAmI(Holder(authority_->Issue("as-dns", "DNS:" + uri))),
              IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING));
  EXPECT_THAT(WhoAmI(Holder(authority_->Issue("as-email", "email:" + uri))),
              IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING));
  // A slash in a subject begins the next part of it; escaped, it stays in the common name.
  EXPECT_THAT(WhoAmI(Holder(authority_->Issue("as-name", "", "spiffe:\\/\\/acme\\/only-uri"))),
              IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING));
  EXPECT_THAT(WhoAmI(Holder(authority_->Issue("both", absl::StrCat("DNS:", uri, ",URI:spiffe://acme/other")))),
              IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  EXPECT_THAT(WhoAmI(Holder(authority_->Issue("plain", "URI:" + uri))), IsOk());
}

TEST_F(TlsTest, UrisAreComparedAsTheyStand) {
  const TenantAccess tenant = server().NewTenant();
  Bind(tenant, "spiffe://acme/exact");
  for (const char* uri : {"spiffe://acme/*", "spiffe://acme/exact/", "spiffe://acme/EXACT", "spiffe://acme/exac"}) {
    EXPECT_THAT(WhoAmI(Holder(authority_->Issue("exact", absl::StrCat("URI:", uri)))),
                IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID))
        << uri;
  }
}

TEST_F(TlsTest, OfSeveralUrisOneMayBeKnown) {
  const TenantAccess tenant = server().NewTenant();
  const std::string first = Bind(tenant, "spiffe://acme/first");
  const Client holder = Holder(
      authority_->Issue("several", "URI:spiffe://acme/unknown,URI:spiffe://acme/first,URI:spiffe://acme/second"));
  v1::Identity identity;
  ASSERT_THAT(WhoAmI(holder, &identity), IsOk());
  EXPECT_EQ(identity.token(), first);
  const std::string second = Bind(tenant, "spiffe://acme/second");
  EXPECT_THAT(WhoAmI(holder), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  Revoke(first);
  ASSERT_THAT(WhoAmI(holder, &identity), IsOk());
  EXPECT_EQ(identity.token(), second);
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityGetsNoConnection) {
  ClientAuthority other;
  const Client stranger = Holder(other.Issue("stranger", "URI:spiffe://acme/stranger"), server().operator_token());
  EXPECT_EQ(WhoAmI(stranger).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, NoTwoLiveTokensHaveOneUri) {
  const TenantAccess tenant = server().NewTenant();
  const TenantAccess other = server().NewTenant();
  const std::string first = Bind(tenant, "spiffe://acme/unique");
  EXPECT_THAT(TryBind(tenant, "spiffe://acme/unique"), IsError(grpc::StatusCode::ALREADY_EXISTS, v1::RESOURCE_EXISTS));
  EXPECT_THAT(TryBind(other, "spiffe://acme/unique"), IsError(grpc::StatusCode::ALREADY_EXISTS, v1::RESOURCE_EXISTS));
  Revoke(first);
  EXPECT_THAT(TryBind(other, "spiffe://acme/unique"), IsOk());
  for (const std::string& bad :
       {std::string("trainer"), std::string("://x"), std::string("spiffe:"), std::string("spiffe://a/*"),
        std::string("spiffe://a b"), std::string("1a://b"), "x:" + std::string(499, 'a')}) {
    EXPECT_THAT(TryBind(tenant, bad), IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD)) << bad;
  }
  EXPECT_THAT(TryBind(tenant, "x:" + std::string(498, 'a')), IsOk());
}

TEST_F(TlsTest, ACertificatesTokenIsNotRotated) {
  const TenantAccess tenant = server().NewTenant();
  v1::RotateTokenRequest request;
  request.set_name(Bind(tenant, "spiffe://acme/rotate"));
  request.set_request_id(NewRequestId());
  EXPECT_THAT(server().Operator().Call(&v1::OperatorService::Stub::RotateToken, request).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::INVALID_FIELD));
}

TEST(TlsFilesTest, WithoutAnAuthorityForClientsTheirCertificatesSayNothing) {
  ClientAuthority authority;
  TestServer server;
  ASSERT_TRUE(server.Start());
  const Client holder(server.MakeChannel({}, authority.Issue("ignored", "URI:spiffe://acme/ignored")), "");
  EXPECT_THAT(WhoAmI(holder), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING));
}

TEST(TlsFilesTest, TheServersCertificateComesFromFilesWhereTheyAreGiven) {
  ClientAuthority authority;
  authority.Issue("server", "DNS:localhost,IP:127.0.0.1");
  TestServer server({"--tls-cert", authority.File("server.pem"), "--tls-key", authority.File("server.key")});
  ASSERT_TRUE(server.Start());
  EXPECT_EQ(ReadFile(server.ca_file()), "") << "no authority was made";
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = ReadFile(authority.file());
  const Client client(grpc::CreateChannel(server.address(), grpc::SslCredentials(tls)), server.operator_token());
  EXPECT_THAT(WhoAmI(client), IsOk());
}

// The end of a dpard that cannot start, and what it says.
void ExpectRefused(const std::vector<std::string>& flags, int exit_code, const std::string& words) {
  const TemporaryDirectory directory;
  std::vector<std::string> command = {BinaryPath("dpard"), "--data-dir", directory.File("data"), "--listen",
                                      "127.0.0.1:0"};
  command.insert(command.end(), flags.begin(), flags.end());
  const CommandResult result = RunCommand(command, {});
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr(words));
}

TEST(TlsFilesTest, FilesThatCannotBeUsedAreNamedAtTheStart) {
  ClientAuthority authority;
  authority.Issue("one", "DNS:localhost");
  authority.Issue("two", "DNS:localhost");
  const std::string one = authority.File("one.pem");
  const std::string key = authority.File("one.key");
  ExpectRefused({"--tls-cert", one}, 2, "tls-cert and tls-key are set together");
  ExpectRefused({"--tls-cert", "/no/such.pem", "--tls-key", key}, 1, "/no/such.pem cannot be used");
  ExpectRefused({"--tls-cert", one, "--tls-key", authority.File("two.key")}, 1,
                absl::StrCat(authority.File("two.key"), " is not the key of the first certificate in ", one));
  ExpectRefused({"--client-ca", key}, 1, absl::StrCat(key, " is not a file of certificates in PEM"));
}

}  // namespace
}  // namespace dpar::e2e
