// Who may do what.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/json_output.h"
#include "tests/end_to_end/raw_call.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class TokenTest : public SharedServerTest {
 protected:
  // Calls without a valid token come often here.
  static void SetUpTestSuite() { StartServer({"--auth-failures-per-minute", "1000000"}); }

  // The status of WhoAmI under an authorization header as given.
  static grpc::Status WhoAmIUnder(const std::vector<std::string>& authorization) {
    const Client client = server().MakeClient("");
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kCallTimeout));
    for (const std::string& value : authorization) context.AddMetadata("authorization", value);
    v1::Identity identity;
    return client.stub<v1::ServerService::Stub>().WhoAmI(&context, {}, &identity);
  }
};

TEST_F(TokenTest, EveryMethodWithoutATokenIsUnauthenticated) {
  const std::vector<const google::protobuf::MethodDescriptor*> methods = AllMethods();
  EXPECT_EQ(methods.size(), 35U);
  const std::shared_ptr<grpc::Channel> channel = server().MakeChannel();
  for (const google::protobuf::MethodDescriptor* method : methods) {
    const auto context = MakeContext("");
    const auto answer =
        RawCall(channel, absl::StrCat("/", method->service()->full_name(), "/", method->name()), "", *context);
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_MISSING)) << method->full_name();
  }
}

TEST_F(TokenTest, EveryMethodWithAWrongTokenIsUnauthenticated) {
  const std::string wrong = server().operator_token().substr(0, server().operator_token().size() - 64) +
                            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  const std::shared_ptr<grpc::Channel> channel = server().MakeChannel();
  for (const google::protobuf::MethodDescriptor* method : AllMethods()) {
    const auto context = MakeContext(wrong);
    const auto answer =
        RawCall(channel, absl::StrCat("/", method->service()->full_name(), "/", method->name()), "", *context);
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID)) << method->full_name();
  }
}

TEST_F(TokenTest, AMalformedTokenIsUnauthenticated) {
  const std::string good = server().operator_token();
  EXPECT_THAT(WhoAmIUnder({"Bearer " + good}), IsOk());
  std::string flipped = good;
  flipped.back() = flipped.back() == '0' ? '1' : '0';
  for (const std::string& token : {flipped, good + "0", good.substr(0, good.size() - 1), good.substr(5),
                                   std::string("dpar_"), std::string("dpar__"), std::string("x")}) {
    EXPECT_THAT(WhoAmIUnder({"Bearer " + token}), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  }
  // gRPC itself refuses metadata of this size.
  EXPECT_EQ(WhoAmIUnder({"Bearer dpar_" + std::string(100'000, 'a')}).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  for (const std::string& header : {good, "Basic " + good, std::string("Bearer"), std::string("Bearer ")}) {
    EXPECT_EQ(WhoAmIUnder({header}).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  }
}

TEST_F(TokenTest, TheErrorOfAnUnknownTokenDoesNotTellItFromARevokedOne) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  v1::WhoAmIRequest who;
  const auto identity = owner.Call(&v1::ServerService::Stub::WhoAmI, who);
  ASSERT_THAT(identity.status, IsOk());
  EXPECT_EQ(identity.value.tenant(), tenant.name);
  EXPECT_EQ(identity.value.role(), v1::OWNER);
  v1::RevokeTokenRequest revoke;
  revoke.set_name(identity.value.token());
  EXPECT_THAT(server().Operator().Call(&v1::OperatorService::Stub::RevokeToken, revoke).status, IsOk());
  EXPECT_THAT(server().Operator().Call(&v1::OperatorService::Stub::RevokeToken, revoke).status, IsOk());

  const auto revoked = owner.Call(&v1::ServerService::Stub::WhoAmI, who);
  EXPECT_THAT(revoked.status, IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  const std::string unknown = absl::StrCat("dpar_nobody_", std::string(64, '0'));
  const grpc::Status never = WhoAmIUnder({"Bearer " + unknown});
  EXPECT_THAT(never, IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  EXPECT_EQ(never.error_message(), revoked.status.error_message());
}

TEST_F(TokenTest, AnExpiredTokenIsUnauthenticated) {
  const TenantAccess tenant = server().NewTenant();
  v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::READER);
  request.mutable_token()->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 15);
  const auto created = server().Operator().Call(&v1::OperatorService::Stub::CreateToken, request);
  ASSERT_THAT(created.status, IsOk());
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  grpc::Status status = WhoAmIUnder({"Bearer " + created.value.secret()});
  EXPECT_THAT(status, IsOk());
  while (status.ok() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(100));
    status = WhoAmIUnder({"Bearer " + created.value.secret()});
  }
  EXPECT_THAT(status, IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
}

TEST_F(TokenTest, AnOperatorReadsButDoesNotWriteATenantsData) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const Client operating = server().Operator();
  const Graph graph = MakeGraph(400);
  const std::string dataset = UploadGraph(owner, tenant.name, graph);
  EXPECT_THAT(
      operating.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant.name, "bytes", graph.sizes)).status,
      IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  EXPECT_THAT(CreateJob(operating, JobRequest(dataset, 1)).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  v1::DeleteDatasetRequest remove;
  remove.set_name(dataset);
  remove.set_request_id(NewRequestId());
  EXPECT_THAT(operating.Call(&v1::DatasetService::Stub::DeleteDataset, remove).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  EXPECT_EQ(GetBudget(operating, dataset).cap_epsilon(), 8);
  v1::GetDatasetRequest get;
  get.set_name(dataset);
  EXPECT_THAT(operating.Call(&v1::DatasetService::Stub::GetDataset, get).status, IsOk());

  const auto job = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_EQ(WaitForJob(owner, job.value.name()).state(), v1::Job::SUCCEEDED);
  EXPECT_THAT(GetJob(operating, job.value.name()).status, IsOk());
  v1::DownloadModelRequest download;
  download.set_name(job.value.name());
  const auto context = MakeContext(operating.token());
  const auto reader = operating.stub<v1::TrainingService::Stub>().DownloadModel(context.get(), download);
  v1::DownloadModelResponse chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_THAT(reader->Finish(), IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
}

TEST_F(TokenTest, AReaderReadsAndDoesNotWrite) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const Client reader = server().MakeClient(server().NewToken(tenant.name, v1::READER));
  const Graph graph = MakeGraph(401);
  const std::string dataset = UploadGraph(owner, tenant.name, graph);
  const auto upload =
      reader.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant.name, "bytes", graph.sizes));
  EXPECT_THAT(upload.status, IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  EXPECT_NE(ErrorMetadata(upload.status, "role"), "(absent)");
  EXPECT_NE(ErrorMetadata(upload.status, "required"), "(absent)");
  EXPECT_THAT(CreateJob(reader, JobRequest(dataset, 1)).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  EXPECT_EQ(GetBudget(reader, dataset).reserved_units(), 0);
}

TEST_F(TokenTest, AMemberTrainsButDeletesNothing) {
  const TenantAccess tenant = server().NewTenant();
  const Client member = server().MakeClient(server().NewToken(tenant.name, v1::MEMBER));
  const std::string dataset = UploadGraph(member, tenant.name, MakeGraph(402));
  const auto job = CreateJob(member, JobRequest(dataset, 1));
  EXPECT_THAT(job.status, IsOk());
  EXPECT_EQ(WaitForJob(member, job.value.name()).state(), v1::Job::SUCCEEDED);
  v1::DeleteDatasetRequest remove;
  remove.set_name(dataset);
  remove.set_request_id(NewRequestId());
  EXPECT_THAT(member.Call(&v1::DatasetService::Stub::DeleteDataset, remove).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
}

TEST_F(TokenTest, TokensAreListedWithoutTheirSecrets) {
  const TenantAccess tenant = server().NewTenant();
  v1::ListTokensRequest request;
  request.set_parent(tenant.name);
  const auto answer = server().Operator().Call(&v1::OperatorService::Stub::ListTokens, request);
  ASSERT_THAT(answer.status, IsOk());
  ASSERT_EQ(answer.value.tokens_size(), 1);
  EXPECT_EQ(answer.value.tokens(0).role(), v1::OWNER);
  const std::vector<std::string> parts = absl::StrSplit(tenant.owner_token, '_');
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0], "dpar");
  EXPECT_EQ(parts[2].size(), 64U);
  EXPECT_EQ(answer.value.tokens(0).name(), absl::StrCat(tenant.name, "/tokens/", parts[1]));
  EXPECT_THAT(answer.value.SerializeAsString(), ::testing::Not(::testing::HasSubstr(parts[2])));
}

v1::RotateTokenRequest RotateRequest(const std::string& name, int64_t overlap_seconds) {
  v1::RotateTokenRequest request;
  request.set_name(name);
  request.mutable_overlap()->set_seconds(overlap_seconds);
  request.set_request_id(NewRequestId());
  return request;
}

Answer<v1::CreateTokenResponse> Create(const Client& client, const v1::CreateTokenRequest& request) {
  return client.Call(&v1::OperatorService::Stub::CreateToken, request);
}

Answer<v1::CreateTokenResponse> Rotate(const Client& client, const v1::RotateTokenRequest& request) {
  return client.Call(&v1::OperatorService::Stub::RotateToken, request);
}

Answer<v1::Token> Revoke(const Client& client, const std::string& name) {
  v1::RevokeTokenRequest request;
  request.set_name(name);
  return client.Call(&v1::OperatorService::Stub::RevokeToken, request);
}

std::vector<v1::Token> List(const Client& client, const std::string& parent) {
  v1::ListTokensRequest request;
  request.set_parent(parent);
  const auto answer = client.Call(&v1::OperatorService::Stub::ListTokens, request);
  EXPECT_THAT(answer.status, IsOk());
  return {answer.value.tokens().begin(), answer.value.tokens().end()};
}

TEST_F(TokenTest, ARepeatedRequestGivesTheSameTokenWithoutItsSecret) {
  const TenantAccess tenant = server().NewTenant();
  const Client operating = server().Operator();
  v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::MEMBER);
  const auto first = Create(operating, request);
  ASSERT_THAT(first.status, IsOk());
  EXPECT_NE(first.value.secret(), "");
  const auto again = Create(operating, request);
  ASSERT_THAT(again.status, IsOk());
  EXPECT_EQ(again.value.secret(), "");
  EXPECT_EQ(again.value.token().SerializeAsString(), first.value.token().SerializeAsString());
  EXPECT_EQ(List(operating, tenant.name).size(), 2U);
  request.mutable_token()->set_role(v1::READER);
  EXPECT_THAT(Create(operating, request).status, IsError(grpc::StatusCode::ALREADY_EXISTS, v1::REQUEST_ID_REUSED));
  request.clear_request_id();
  EXPECT_THAT(Create(operating, request).status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));

  const v1::RotateTokenRequest rotate = RotateRequest(first.value.token().name(), 60);
  const auto rotated = Rotate(operating, rotate);
  ASSERT_THAT(rotated.status, IsOk());
  const auto rotated_again = Rotate(operating, rotate);
  ASSERT_THAT(rotated_again.status, IsOk());
  EXPECT_EQ(rotated_again.value.token().name(), rotated.value.token().name());
  EXPECT_EQ(rotated_again.value.secret(), "");
  EXPECT_EQ(List(operating, tenant.name).size(), 3U);
}

TEST_F(TokenTest, ASecretIsNowhereInTheStore) {
  const TenantAccess tenant = server().NewTenant();
  const auto made = Create(server().Operator(), TokenRequest(tenant.name, v1::MEMBER));
  ASSERT_THAT(made.status, IsOk());
  const std::string secret = made.value.secret().substr(made.value.secret().rfind('_') + 1);
  std::string store = ReadFile(server().data_directory() + "/dpar.sqlite");
  store += ReadFile(server().data_directory() + "/dpar.sqlite-wal");
  EXPECT_THAT(store, ::testing::HasSubstr(made.value.token().name().substr(tenant.name.size() + 8)));
  EXPECT_THAT(store, ::testing::Not(::testing::HasSubstr(secret)));
}

TEST_F(TokenTest, ARotatedTokenHasASuccessorOfItsKindAndEndsAfterTheOverlap) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::MEMBER);
  request.mutable_token()->set_purpose("nightly");
  request.mutable_token()->add_scopes(v1::TRAIN);
  request.mutable_token()->add_scopes(v1::READ);
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  request.mutable_token()->mutable_expire_time()->set_seconds(now + 100'000);
  const auto old = Create(owner, request);
  ASSERT_THAT(old.status, IsOk());
  const auto next = Rotate(owner, RotateRequest(old.value.token().name(), 3600));
  ASSERT_THAT(next.status, IsOk());
  EXPECT_NE(next.value.token().name(), old.value.token().name());
  EXPECT_EQ(next.value.token().role(), v1::MEMBER);
  EXPECT_EQ(next.value.token().purpose(), "nightly");
  ASSERT_EQ(next.value.token().scopes_size(), 2);
  EXPECT_EQ(next.value.token().scopes(0), v1::READ);
  EXPECT_EQ(next.value.token().scopes(1), v1::TRAIN);
  EXPECT_GE(next.value.token().expire_time().seconds(), now + 100'000 - 1);
  EXPECT_THAT(WhoAmIUnder({"Bearer " + old.value.secret()}), IsOk());
  EXPECT_THAT(WhoAmIUnder({"Bearer " + next.value.secret()}), IsOk());
  for (const v1::Token& token : List(owner, tenant.name)) {
    if (token.name() == old.value.token().name()) {
      EXPECT_GE(token.expire_time().seconds(), now + 3600);
      EXPECT_LT(token.expire_time().seconds(), now + 50'000);
    }
  }
  const auto last = Rotate(owner, RotateRequest(next.value.token().name(), 0));
  ASSERT_THAT(last.status, IsOk());
  EXPECT_THAT(WhoAmIUnder({"Bearer " + next.value.secret()}),
              IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  EXPECT_THAT(WhoAmIUnder({"Bearer " + last.value.secret()}), IsOk());
  // What has ended is not rotated again.
  EXPECT_THAT(Rotate(owner, RotateRequest(next.value.token().name(), 0)).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::INVALID_FIELD));
  ASSERT_THAT(Revoke(owner, last.value.token().name()).status, IsOk());
  EXPECT_THAT(Rotate(owner, RotateRequest(last.value.token().name(), 0)).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::INVALID_FIELD));
}

TEST_F(TokenTest, AnOverlapIsFromNothingToThirtyDays) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const auto token = Create(owner, TokenRequest(tenant.name, v1::READER));
  ASSERT_THAT(token.status, IsOk());
  // Were the answer lost, a token that rotates itself could not ask again.
  v1::WhoAmIRequest who;
  const std::string own = owner.Call(&v1::ServerService::Stub::WhoAmI, who).value.token();
  EXPECT_THAT(Rotate(owner, RotateRequest(own, 59)).status,
              IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  for (const int64_t overlap : {int64_t{-1}, int64_t{30 * 86'400 + 1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(Rotate(owner, RotateRequest(token.value.token().name(), overlap)).status,
                IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  }
  EXPECT_THAT(Rotate(owner, RotateRequest(token.value.token().name(), 30 * 86'400)).status, IsOk());
}

TEST_F(TokenTest, AnOwnerManagesTheTokensOfItsTenantAndNoOthers) {
  const TenantAccess tenant = server().NewTenant();
  const TenantAccess other = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const auto made = Create(owner, TokenRequest(tenant.name, v1::OWNER));
  ASSERT_THAT(made.status, IsOk());
  EXPECT_EQ(List(owner, tenant.name).size(), 2U);
  EXPECT_THAT(Revoke(owner, made.value.token().name()).status, IsOk());

  const std::string foreign = List(server().Operator(), other.name).front().name();
  const std::string operators = List(server().Operator(), "operator").front().name();
  EXPECT_THAT(Create(owner, TokenRequest(other.name, v1::READER)).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(Create(owner, TokenRequest("operator", v1::OPERATOR)).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  for (const std::string& name : {foreign, operators}) {
    EXPECT_THAT(Revoke(owner, name).status, IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
    EXPECT_THAT(Rotate(owner, RotateRequest(name, 0)).status,
                IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  }
  EXPECT_THAT(Create(owner, TokenRequest(tenant.name, v1::OPERATOR)).status,
              IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  // Another's id under its own tenant's name is not there either.
  EXPECT_THAT(Revoke(owner, absl::StrCat(tenant.name, "/tokens/", foreign.substr(foreign.rfind('/') + 1))).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(WhoAmIUnder({"Bearer " + other.owner_token}), IsOk());
  // URIs of certificates are the operators' to give.
  v1::CreateTokenRequest certificate = TokenRequest(tenant.name, v1::READER);
  certificate.mutable_token()->set_certificate_uri("spiffe://test/reader");
  EXPECT_THAT(Create(owner, certificate).status, IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
}

TEST_F(TokenTest, NobodyHandsOutMoreScopesThanTheyHave) {
  const TenantAccess tenant = server().NewTenant();
  v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::OWNER);
  request.mutable_token()->add_scopes(v1::ADMINISTER);
  request.mutable_token()->add_scopes(v1::READ);
  const auto narrow = Create(server().Operator(), request);
  ASSERT_THAT(narrow.status, IsOk());
  const Client owner = server().MakeClient(narrow.value.secret());
  const auto all = Create(owner, TokenRequest(tenant.name, v1::OWNER));
  EXPECT_THAT(all.status, IsError(grpc::StatusCode::PERMISSION_DENIED, v1::SCOPE_INSUFFICIENT));
  EXPECT_EQ(ErrorMetadata(all.status, "required"), "upload");
  v1::CreateTokenRequest more = TokenRequest(tenant.name, v1::MEMBER);
  more.mutable_token()->add_scopes(v1::TRAIN);
  EXPECT_THAT(Create(owner, more).status, IsError(grpc::StatusCode::PERMISSION_DENIED, v1::SCOPE_INSUFFICIENT));
  v1::CreateTokenRequest same = TokenRequest(tenant.name, v1::MEMBER);
  same.mutable_token()->add_scopes(v1::READ);
  EXPECT_THAT(Create(owner, same).status, IsOk());
  // The successor of a token that can do more would be such a token.
  const std::string first = List(owner, tenant.name).front().name();
  EXPECT_THAT(Rotate(owner, RotateRequest(first, 0)).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::SCOPE_INSUFFICIENT));
  EXPECT_THAT(WhoAmIUnder({"Bearer " + tenant.owner_token}), IsOk()) << "nothing was rotated";
  for (const int bad : {0, 6, 99}) {
    v1::CreateTokenRequest unknown = TokenRequest(tenant.name, v1::MEMBER);
    unknown.mutable_token()->add_scopes(static_cast<v1::Scope>(bad));
    EXPECT_THAT(Create(server().Operator(), unknown).status,
                IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  }
}

TEST_F(TokenTest, AUseShowsInTheListSoonAfter) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const auto unused = Create(owner, TokenRequest(tenant.name, v1::READER));
  ASSERT_THAT(unused.status, IsOk());
  const int64_t before = absl::ToUnixSeconds(absl::Now()) / 60 * 60;
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  std::vector<v1::Token> tokens = List(owner, tenant.name);
  while (!tokens.front().has_last_use_time() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(50));
    tokens = List(owner, tenant.name);
  }
  EXPECT_GE(tokens.front().last_use_time().seconds(), before - 60);
  EXPECT_EQ(tokens.front().last_use_time().seconds() % 60, 0);
  EXPECT_FALSE(tokens.back().has_last_use_time());
}

TEST_F(TokenTest, TheCommandLineShowsScopesExpiryAndLastUse) {
  const TenantAccess tenant = server().NewTenant();
  const CommandResult made =
      server().Dpar(tenant.owner_token, {"--json", "token", "create", "--tenant", tenant.id, "--role", "member",
                                         "--scope", "read,train", "--scope", "download", "--expires-in", "90d"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const nlohmann::json token = JsonLines(made, "token create").at(0);
  EXPECT_EQ(token["token"]["scopes"], (std::vector<std::string>{"read", "train", "download"}));
  const std::string secret = token["secret"];
  const std::string name = token["token"]["name"];

  const CommandResult who = server().Dpar(secret, {"whoami"});
  EXPECT_EQ(who.exit_code, 0) << who.err;
  EXPECT_EQ(who.out, absl::StrCat("token    ", name, "\ntenant   ", tenant.name,
                                  "\nrole     member\nscopes   read,train,download\nexpires  ",
                                  std::string(token["token"]["expire_time"]), "\n"));
  const nlohmann::json identity = JsonLines(server().Dpar(tenant.owner_token, {"whoami", "--json"}), "whoami").at(0);
  EXPECT_EQ(identity["identity"]["scopes"], nlohmann::json::array());
  EXPECT_EQ(identity["identity"]["role"], "owner");
  EXPECT_FALSE(identity["identity"].contains("expire_time"));

  const CommandResult forbidden = server().Dpar(secret, {"upload", "/dev/null"});
  EXPECT_NE(forbidden.exit_code, 0);
  const CommandResult rotated =
      server().Dpar(tenant.owner_token, {"--json", "token", "rotate", name, "--overlap", "1h"});
  ASSERT_EQ(rotated.exit_code, 0) << rotated.err;
  EXPECT_THAT(rotated.err, ::testing::HasSubstr(name + " ends in 1h"));
  const nlohmann::json next = JsonLines(rotated, "token rotate").at(0);
  EXPECT_EQ(next["token"]["scopes"], token["token"]["scopes"]);
  EXPECT_EQ(server().Dpar(next["secret"], {"whoami"}).exit_code, 0);

  const CommandResult list = server().Dpar(tenant.owner_token, {"token", "list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, ::testing::HasSubstr("read,train,download"));
  EXPECT_THAT(list.out, ::testing::HasSubstr(absl::StrCat("full names: ", tenant.name, "/tokens/ID\n")));
  for (const absl::string_view line : absl::StrSplit(list.out, '\n')) EXPECT_LE(line.size(), 80U) << line;
}

TEST(TokenLimitTest, TheLastTokenAndTheLastTenantFitAndTheNextDoNot) {
  TestServer server({"--max-tokens", "3", "--max-tenants", "2"});
  ASSERT_TRUE(server.Start());
  const Client operating = server.Operator();
  const TenantAccess tenant = server.NewTenant();
  const auto second = Create(operating, TokenRequest(tenant.name, v1::READER));
  ASSERT_THAT(second.status, IsOk());
  const auto third = Create(operating, TokenRequest(tenant.name, v1::READER));
  ASSERT_THAT(third.status, IsOk());
  const auto over = Create(operating, TokenRequest(tenant.name, v1::READER));
  EXPECT_THAT(over.status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_EQ(ErrorMetadata(over.status, "limit"), "max_tokens");
  EXPECT_EQ(ErrorMetadata(over.status, "maximum"), "3");
  // Of a rotated token and its successor only one counts, unless they overlap.
  EXPECT_THAT(Rotate(operating, RotateRequest(third.value.token().name(), 60)).status,
              IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_THAT(Rotate(operating, RotateRequest(third.value.token().name(), 0)).status, IsOk());
  EXPECT_THAT(Revoke(operating, second.value.token().name()).status, IsOk());
  EXPECT_THAT(Create(operating, TokenRequest(tenant.name, v1::READER)).status, IsOk());
  // The operators have a count of their own.
  EXPECT_THAT(Create(operating, TokenRequest("operator", v1::OPERATOR)).status, IsOk());
  EXPECT_THAT(Create(operating, TokenRequest("operator", v1::OPERATOR)).status, IsOk());
  EXPECT_THAT(Create(operating, TokenRequest("operator", v1::OPERATOR)).status,
              IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));

  server.NewTenant();
  v1::CreateTenantRequest third_tenant;
  third_tenant.set_tenant_id("third");
  third_tenant.set_request_id(NewRequestId());
  const auto refused = operating.Call(&v1::OperatorService::Stub::CreateTenant, third_tenant);
  EXPECT_THAT(refused.status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_EQ(ErrorMetadata(refused.status, "limit"), "max_tenants");
  const auto listed = operating.Call(&v1::OperatorService::Stub::ListTenants, v1::ListTenantsRequest());
  EXPECT_EQ(listed.value.tenants_size(), 2) << "nothing is left of what was refused";
}

TEST_F(TokenTest, TheCommandLineSaysNotAuthorisedWithExitCodeFour) {
  const CommandResult wrong = server().Dpar(absl::StrCat("dpar_nobody_", std::string(64, '0')), {"jobs"});
  EXPECT_EQ(wrong.exit_code, 4) << wrong.err;
  const TenantAccess tenant = server().NewTenant();
  const CommandResult forbidden = server().Dpar(tenant.owner_token, {"tenant", "list"});
  EXPECT_EQ(forbidden.exit_code, 4) << forbidden.err;
}

}  // namespace
}  // namespace dpar::e2e
