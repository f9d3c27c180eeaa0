#include "tests/end_to_end/harness.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/status.pb.h"

namespace dpar::e2e {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(30);
constexpr absl::Duration kStartPoll = absl::Milliseconds(10);
constexpr size_t kLogTailBytes = 6000;

}  // namespace

std::unique_ptr<grpc::ClientContext> MakeContext(const std::string& token, absl::Duration timeout) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  if (!token.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
  return context;
}

Client::Client(const std::shared_ptr<grpc::Channel>& channel, std::string token)
    : token_(std::move(token)),
      stubs_(v1::DatasetService::NewStub(channel), v1::TrainingService::NewStub(channel),
             v1::BudgetService::NewStub(channel), v1::OperatorService::NewStub(channel),
             v1::ServerService::NewStub(channel)) {}

TestServer::TestServer(std::vector<std::string> flags, std::string shared_directory)
    : flags_(std::move(flags)), shared_directory_(std::move(shared_directory)) {
  // Servers that share a directory each need an address file of their own.
  if (!shared_directory_.empty()) flags_.insert(flags_.end(), {"--address-file", directory_.File("address")});
}

TestServer::~TestServer() {
  if (process_ != nullptr) Terminate();
  if (::testing::Test::HasFailure()) PrintLogTail();
}

bool TestServer::Start(const std::string& binary, const Environment& environment) {
  Launch(binary, environment);
  return AwaitListening();
}

void TestServer::Launch(const std::string& binary, const Environment& environment) {
  std::error_code ignored;
  std::filesystem::remove(address_file(), ignored);
  std::vector<std::string> arguments = {BinaryPath(binary), "--data-dir",    data_directory(),
                                        "--listen",         "127.0.0.1:0",   "--metrics-listen",
                                        "127.0.0.1:0",      "--page-listen", "127.0.0.1:0"};
  arguments.insert(arguments.end(), flags_.begin(), flags_.end());
  const std::string log_file = directory_.File("dpard.log");
  process_ = std::make_unique<Process>(arguments, environment, log_file, log_file);
}

bool TestServer::ComesUp() {
  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (absl::Now() < deadline && !process_->Wait(kStartPoll).has_value()) {
    address_ = std::string(absl::StripAsciiWhitespace(ReadFile(address_file())));
    if (!address_.empty()) return true;
  }
  return false;
}

bool TestServer::AwaitListening() {
  if (ComesUp()) return true;
  const std::optional<int> exit_code = process_->Wait(absl::ZeroDuration());
  ADD_FAILURE() << (exit_code.has_value()
                        ? absl::StrCat("dpard ended with ", *exit_code, " before it listened")
                        : absl::StrCat("dpard did not listen within ", absl::FormatDuration(kStartTimeout)));
  PrintLogTail();
  return false;
}

void TestServer::Kill() {
  process_->Signal(SIGKILL);
  EXPECT_EQ(process_->Wait(absl::Seconds(10)), std::optional<int>(128 + SIGKILL));
  process_.reset();
}

std::optional<int> TestServer::AwaitEnd(absl::Duration timeout) {
  const std::optional<int> exit_code = process_->Wait(timeout);
  if (exit_code.has_value()) process_.reset();
  return exit_code;
}

std::optional<int> TestServer::Terminate(absl::Duration timeout) {
  process_->Signal(SIGTERM);
  const std::optional<int> exit_code = process_->Wait(timeout);
  process_.reset();
  return exit_code;
}

std::string TestServer::operator_token() const {
  return std::string(absl::StripAsciiWhitespace(ReadFile(data_directory() + "/operator.token")));
}

std::string TestServer::OtherAddress(const std::string& kind) const {
  return ReadFile(shared_directory_.empty() ? data_directory() + "/" + kind + "-address"
                                            : directory_.File("address." + kind));
}

std::string TestServer::log() const { return ReadFile(directory_.File("dpard.log")); }

void TestServer::PrintLogTail() const {
  const std::string text = log();
  const size_t start = text.size() > kLogTailBytes ? text.size() - kLogTailBytes : 0;
  std::cerr << "--- end of dpard's log\n" << text.substr(start) << "--- \n";
}

std::shared_ptr<grpc::Channel> TestServer::MakeChannel(grpc::ChannelArguments arguments,
                                                       const ClientCertificate& certificate) const {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = ReadFile(ca_file());
  tls.pem_cert_chain = certificate.certificate;
  tls.pem_private_key = certificate.key;
  // Connections of different tests, and of different runs of the server, have nothing to do with each other.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address_, grpc::SslCredentials(tls), arguments);
}

TenantAccess TestServer::NewTenant() {
  TenantAccess tenant;
  tenant.id = absl::StrCat("tenant-", ++tenants_made_);
  v1::CreateTenantRequest request;
  request.set_tenant_id(tenant.id);
  request.set_request_id(NewRequestId());
  const auto answer = Operator().Call(&v1::OperatorService::Stub::CreateTenant, request);
  EXPECT_THAT(answer.status, IsOk());
  tenant.name = answer.value.name();
  EXPECT_EQ(tenant.name, absl::StrCat("tenants/", tenant.id));
  tenant.owner_token = NewToken(tenant.name, v1::OWNER);
  return tenant;
}

std::string TestServer::NewToken(const std::string& parent, v1::Role role) const {
  const auto answer = Operator().Call(&v1::OperatorService::Stub::CreateToken, TokenRequest(parent, role));
  EXPECT_THAT(answer.status, IsOk());
  return answer.value.secret();
}

CommandResult TestServer::Dpar(const std::string& token, const std::vector<std::string>& arguments,
                               absl::Duration timeout) const {
  std::vector<std::string> command = {BinaryPath("dpar")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command, DparEnvironment(token), timeout);
}

Environment TestServer::DparEnvironment(const std::string& token) const {
  Environment environment = {{"DPAR_SERVER", address_},
                             {"DPAR_CA", ca_file()},
                             {"XDG_CONFIG_HOME", Scratch("config")},
                             {"XDG_DATA_HOME", Scratch("share")}};
  if (!token.empty()) environment["DPAR_TOKEN"] = token;
  return environment;
}

std::unique_ptr<TestServer> SharedServerTest::server_;

void SharedServerTest::SetUpTestSuite() { StartServer({}); }

void SharedServerTest::StartServer(const std::vector<std::string>& flags) {
  server_ = std::make_unique<TestServer>(flags);
  if (!server_->Start()) server_.reset();
}

void SharedServerTest::TearDownTestSuite() { server_.reset(); }

void SharedServerTest::SetUp() { ASSERT_NE(server_, nullptr) << "there is no server to test"; }

void SharedServerTest::TearDown() {
  if (HasFailure() && server_ != nullptr) server_->PrintLogTail();
}

v1::CreateTokenRequest TokenRequest(const std::string& parent, v1::Role role) {
  v1::CreateTokenRequest request;
  request.set_parent(parent);
  request.mutable_token()->set_role(role);
  request.set_request_id(NewRequestId());
  return request;
}

std::string NewRequestId() {
  static std::atomic<int> made = 0;
  return absl::StrCat("request-", ++made);
}

std::optional<google::rpc::ErrorInfo> ErrorInfoOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) return std::nullopt;
  google::rpc::ErrorInfo info;
  for (const google::protobuf::Any& detail : details.details()) {
    if (detail.UnpackTo(&info)) return info;
  }
  return std::nullopt;
}

std::string ErrorMetadata(const grpc::Status& status, const std::string& key) {
  const std::optional<google::rpc::ErrorInfo> info = ErrorInfoOf(status);
  if (!info.has_value()) return "(absent)";
  const auto found = info->metadata().find(key);
  return found == info->metadata().end() ? "(absent)" : found->second;
}

}  // namespace dpar::e2e
