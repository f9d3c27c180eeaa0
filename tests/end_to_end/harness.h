// A real dpard in a temporary directory, TLS channels to it, and clients with bearer tokens.
#ifndef DPAR_TESTS_END_TO_END_HARNESS_H_
#define DPAR_TESTS_END_TO_END_HARNESS_H_

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "dpar/v1/budget.grpc.pb.h"
#include "dpar/v1/dataset.grpc.pb.h"
#include "dpar/v1/errors.pb.h"
#include "dpar/v1/operator.grpc.pb.h"
#include "dpar/v1/server.grpc.pb.h"
#include "dpar/v1/training.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "tests/end_to_end/process.h"

namespace dpar::e2e {

inline constexpr absl::Duration kCallTimeout = absl::Seconds(30);
inline constexpr absl::Duration kJobTimeout = absl::Seconds(90);

// What a call gave.
template <typename Response>
struct Answer {
  grpc::Status status;
  Response value;
};

// A context with a deadline and, unless the token is empty, its authorization header.
std::unique_ptr<grpc::ClientContext> MakeContext(const std::string& token, absl::Duration timeout = kCallTimeout);

// Every stub of the API behind one token.
class Client {
 public:
  Client(const std::shared_ptr<grpc::Channel>& channel, std::string token);

  // One unary call: client.Call(&v1::BudgetService::Stub::GetBudget, request).
  template <typename Stub, typename Request, typename Response>
  Answer<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                        const Request& request) const {
    Answer<Response> answer;
    const std::unique_ptr<grpc::ClientContext> context = MakeContext(token_);
    answer.status = (this->stub<Stub>().*method)(context.get(), request, &answer.value);
    return answer;
  }

  template <typename Stub>
  [[nodiscard]] Stub& stub() const {
    return *std::get<std::unique_ptr<Stub>>(stubs_);
  }
  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  std::string token_;
  std::tuple<std::unique_ptr<v1::DatasetService::Stub>, std::unique_ptr<v1::TrainingService::Stub>,
             std::unique_ptr<v1::BudgetService::Stub>, std::unique_ptr<v1::OperatorService::Stub>,
             std::unique_ptr<v1::ServerService::Stub>>
      stubs_;
};

// A tenant and its owner's token.
struct TenantAccess {
  std::string id;
  std::string name;  // tenants/{id}
  std::string owner_token;
};

// A client's certificate and its key, in PEM; empty for none.
struct ClientCertificate {
  std::string certificate;
  std::string key;
};

// One dpard on a port that the kernel picks, and on a data directory of its own unless it is given one to share.
class TestServer {
 public:
  explicit TestServer(std::vector<std::string> flags = {}, std::string shared_directory = "");
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  // Starts it on its directory (also again) and waits until it accepts calls; false, and a test failure, if it does
  // not within 30 seconds. `binary` is dpard, or a variant of it.
  bool Start(const std::string& binary = "dpard", const Environment& environment = {});
  // The same without waiting, for a server that is to die before it listens; and the waiting.
  void Launch(const std::string& binary = "dpard", const Environment& environment = {});
  bool AwaitListening();
  // Waits until it accepts calls; false when it ends before, which is no failure.
  bool ComesUp();
  void Signal(int signal) { process_->Signal(signal); }
  // SIGKILL, as a power cut would.
  void Kill();
  // Waits until it ends of itself; as Process::Wait.
  std::optional<int> AwaitEnd(absl::Duration timeout);
  [[nodiscard]] bool runs() const { return process_ != nullptr; }
  // Of a server that runs.
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  // Whether every thread of it stands still after SIGSTOP.
  [[nodiscard]] bool stopped() const { return process_ != nullptr && process_->stopped(); }
  // SIGTERM; the exit code, or nothing when it does not end within `timeout` (it is killed then).
  std::optional<int> Terminate(absl::Duration timeout = absl::Seconds(20));

  [[nodiscard]] const std::string& address() const { return address_; }
  // Where it serves metrics and health; empty when it does not.
  [[nodiscard]] std::string metrics_address() const { return OtherAddress("metrics"); }
  // The same of the operator's page.
  [[nodiscard]] std::string page_address() const { return OtherAddress("page"); }
  [[nodiscard]] std::string data_directory() const {
    return shared_directory_.empty() ? directory_.File("data") : shared_directory_;
  }
  // A place for the test's own files.
  [[nodiscard]] std::string Scratch(const std::string& name) const { return directory_.File(name); }
  [[nodiscard]] std::string ca_file() const { return data_directory() + "/tls/ca.pem"; }
  [[nodiscard]] std::string operator_token() const;
  // Everything that dpard wrote to stdout and stderr.
  [[nodiscard]] std::string log() const;
  void PrintLogTail() const;

  // A new TLS channel that trusts this server's CA, and shows a certificate if there is one.
  [[nodiscard]] std::shared_ptr<grpc::Channel> MakeChannel(grpc::ChannelArguments arguments = {},
                                                           const ClientCertificate& certificate = {}) const;
  [[nodiscard]] Client MakeClient(const std::string& token) const { return Client(MakeChannel(), token); }
  [[nodiscard]] Client Operator() const { return MakeClient(operator_token()); }
  [[nodiscard]] Client Owner(const TenantAccess& tenant) const { return MakeClient(tenant.owner_token); }

  // A tenant that no other test of this server uses.
  TenantAccess NewTenant();
  // A token of that tenant ("operator" as parent: of the operators); empty, and a test failure, when refused.
  [[nodiscard]] std::string NewToken(const std::string& parent, v1::Role role) const;

  // What `dpar` needs to reach this server with the token. Its profiles and keys go to the test's own directory.
  [[nodiscard]] Environment DparEnvironment(const std::string& token) const;
  // Runs `dpar` against this server with the token.
  [[nodiscard]] CommandResult Dpar(const std::string& token, const std::vector<std::string>& arguments,
                                   absl::Duration timeout = absl::Seconds(90)) const;

 private:
  [[nodiscard]] std::string address_file() const {
    return shared_directory_.empty() ? data_directory() + "/address" : directory_.File("address");
  }
  [[nodiscard]] std::string OtherAddress(const std::string& kind) const;

  TemporaryDirectory directory_;
  std::vector<std::string> flags_;
  std::string shared_directory_;
  std::unique_ptr<Process> process_;
  std::string address_;
  int tenants_made_ = 0;
};

// Tests that share one server with the default configuration; each makes tenants of its own.
class SharedServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;
  void TearDown() override;

  // For a suite whose own SetUpTestSuite asks for another configuration.
  static void StartServer(const std::vector<std::string>& flags);
  static TestServer& server() { return *server_; }

 private:
  static std::unique_ptr<TestServer> server_;
};

// A request for a token of a tenant, or of the operators ("operator").
v1::CreateTokenRequest TokenRequest(const std::string& parent, v1::Role role);

// A string that no other request of this process uses.
std::string NewRequestId();

// The ErrorInfo that came with a status.
std::optional<google::rpc::ErrorInfo> ErrorInfoOf(const grpc::Status& status);
// Its metadata under `key`; "(absent)" when there is none.
std::string ErrorMetadata(const grpc::Status& status, const std::string& key);

// A status of this code whose ErrorInfo has this reason and the API's domain.
MATCHER_P2(IsError, code, reason, "") {
  const std::optional<google::rpc::ErrorInfo> info = ErrorInfoOf(arg);
  *result_listener << "code " << arg.error_code() << ", reason " << (info ? info->reason() : "(no ErrorInfo)")
                   << ", message \"" << arg.error_message() << "\"";
  return arg.error_code() == code && info.has_value() && info->reason() == v1::ErrorReason_Name(reason) &&
         info->domain() == "dpar.v1";
}

MATCHER(IsOk, "") {
  *result_listener << "code " << arg.error_code() << ", message \"" << arg.error_message() << "\"";
  return arg.ok();
}

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_HARNESS_H_
