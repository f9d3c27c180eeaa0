// Who may do what.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/raw_call.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class TokenTest : public SharedServerTest {
 protected:
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

// Every method of the API, as the descriptors have them.
std::vector<const google::protobuf::MethodDescriptor*> AllMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Dataset::descriptor()->file(), v1::Job::descriptor()->file(), v1::Budget::descriptor()->file(),
        v1::Tenant::descriptor()->file(), v1::ServerInfo::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) methods.push_back(file->service(s)->method(m));
    }
  }
  return methods;
}

TEST_F(TokenTest, EveryMethodWithoutATokenIsUnauthenticated) {
  const std::vector<const google::protobuf::MethodDescriptor*> methods = AllMethods();
  EXPECT_EQ(methods.size(), 29U);
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
  v1::CreateTokenRequest request;
  request.set_parent(tenant.name);
  request.mutable_token()->set_role(v1::READER);
  request.mutable_token()->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 2);
  const auto created = server().Operator().Call(&v1::OperatorService::Stub::CreateToken, request);
  ASSERT_THAT(created.status, IsOk());
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
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

TEST_F(TokenTest, TheOperatorServiceIsForOperatorsOnly) {
  const TenantAccess tenant = server().NewTenant();
  const std::shared_ptr<grpc::Channel> channel = server().MakeChannel();
  const google::protobuf::ServiceDescriptor* service = v1::Tenant::descriptor()->file()->service(0);
  for (int m = 0; m < service->method_count(); ++m) {
    const auto context = MakeContext(tenant.owner_token);
    const auto answer =
        RawCall(channel, absl::StrCat("/", service->full_name(), "/", service->method(m)->name()), "", *context);
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT))
        << service->method(m)->name();
  }
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

TEST_F(TokenTest, TheCommandLineSaysNotAuthorisedWithExitCodeFour) {
  const CommandResult wrong = server().Dpar(absl::StrCat("dpar_nobody_", std::string(64, '0')), {"jobs"});
  EXPECT_EQ(wrong.exit_code, 4) << wrong.err;
  const TenantAccess tenant = server().NewTenant();
  const CommandResult forbidden = server().Dpar(tenant.owner_token, {"tenant", "list"});
  EXPECT_EQ(forbidden.exit_code, 4) << forbidden.err;
}

}  // namespace
}  // namespace dpar::e2e
