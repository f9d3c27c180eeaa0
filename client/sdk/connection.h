#ifndef DPAR_CLIENT_SDK_CONNECTION_H_
#define DPAR_CLIENT_SDK_CONNECTION_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/sdk/cancellation.h"
#include "core/mutex.h"
#include "core/random/secure_random.h"
#include "dpar/v1/budget.grpc.pb.h"
#include "dpar/v1/dataset.grpc.pb.h"
#include "dpar/v1/operator.grpc.pb.h"
#include "dpar/v1/overview.grpc.pb.h"
#include "dpar/v1/server.grpc.pb.h"
#include "dpar/v1/training.grpc.pb.h"

namespace dpar {

struct ConnectOptions {
  std::string server;  // host:port
  std::string ca_pem;  // the certificate authority that signed the server's certificate
  std::string token;   // sent as a bearer token with every call, unless it is empty
  // Shown to the server when it asks for one; both or neither. A token comes before it.
  std::string client_certificate_pem;
  std::string client_key_pem;
  // Cancelled by another thread, it ends every call of the connection, uploads and downloads too. Must outlive it.
  Cancellation* cancellation = nullptr;
};

// The API's unary calls. Thread-safe. Each is a read, is idempotent or has a request id, so all are sent again after
// UNAVAILABLE, up to three times, after growing pauses with jitter. Cancelled calls are CANCELLED.
class Connection {
 public:
  // Opens a TLS channel. No call is made, so a server that is down shows with the first call.
  static std::unique_ptr<Connection> Open(const ConnectOptions& options);
  Connection(std::shared_ptr<grpc::Channel> channel, std::string token, Cancellation* cancellation = nullptr);

  absl::StatusOr<v1::ServerInfo> GetServerInfo();
  absl::StatusOr<v1::Identity> WhoAmI();
  absl::StatusOr<std::vector<v1::SigningKey>> ListSigningKeys();

  absl::StatusOr<v1::Upload> OpenUpload(const v1::OpenUploadRequest& request);
  absl::StatusOr<v1::Upload> GetUpload(const std::string& name);
  absl::StatusOr<v1::FinishUploadResponse> FinishUpload(const v1::FinishUploadRequest& request);
  absl::StatusOr<v1::Dataset> GetDataset(const std::string& name);
  absl::StatusOr<std::vector<v1::Dataset>> ListDatasets(const std::string& tenant);
  absl::Status DeleteDataset(const v1::DeleteDatasetRequest& request);

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request);
  absl::StatusOr<v1::Job> GetJob(const std::string& name);
  absl::StatusOr<std::vector<v1::Job>> ListJobs(const std::string& tenant);
  absl::StatusOr<v1::Job> CancelJob(const v1::CancelJobRequest& request);
  absl::StatusOr<v1::Certificate> GetCertificate(const std::string& job);

  absl::StatusOr<v1::Budget> GetBudget(const std::string& name);
  // All list pages, and the fullest budget: of a tenant, or of all when it is empty, which operators may ask.
  struct Budgets {
    std::vector<v1::Budget> budgets;
    std::optional<v1::Budget> fullest;
  };
  // Without equivalent_epsilon when only sums are wanted, which is quicker.
  absl::StatusOr<Budgets> ListBudgets(const std::string& tenant, bool sums_only = false);
  // Populations with their datasets, and what each of these has posted; all list pages, of a tenant or of all.
  absl::StatusOr<std::vector<v1::PopulationUsage>> ListUsage(const std::string& tenant);
  absl::StatusOr<v1::Budget> MergePopulation(const v1::MergePopulationRequest& request);
  absl::StatusOr<std::vector<v1::LedgerEntry>> ListLedgerEntries(const std::string& population);
  absl::StatusOr<v1::VerifyChainResponse> VerifyChain(const std::string& population);
  // Also against an entry that is known from elsewhere.
  absl::StatusOr<v1::VerifyChainResponse> VerifyChain(const v1::VerifyChainRequest& request);

  absl::StatusOr<v1::Tenant> CreateTenant(const v1::CreateTenantRequest& request);
  absl::StatusOr<std::vector<v1::Tenant>> ListTenants();
  absl::StatusOr<v1::CreateTokenResponse> CreateToken(const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::CreateTokenResponse> RotateToken(const v1::RotateTokenRequest& request);
  absl::StatusOr<std::vector<v1::Token>> ListTokens(const std::string& parent);
  absl::StatusOr<v1::Token> RevokeToken(const std::string& name);
  absl::StatusOr<v1::Budget> SetBudgetCap(const v1::SetBudgetCapRequest& request);
  absl::StatusOr<v1::LedgerEntry> AdjustLedger(const v1::AdjustLedgerRequest& request);

  // For streams, which upload.h, watch.h and download.h wrap: the stubs, and the token put into a context.
  [[nodiscard]] v1::DatasetService::Stub& datasets() { return *datasets_; }
  [[nodiscard]] v1::TrainingService::Stub& training() { return *training_; }
  void Authorise(grpc::ClientContext& context) const;
  // Waits before a retry, or until cancelled. It waits for the channel, because gRPC connects only while someone does:
  // a plain sleep between calls that fail at once would never find a restarted server.
  void Pause(absl::Duration duration, Cancellation& cancellation);
  // RetryDelay (status.h) with jitter of its own.
  absl::Duration DelayBefore(const absl::Status& status, int attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  // The one in the options, or one that is never cancelled.
  [[nodiscard]] Cancellation& cancellation() const { return *cancellation_; }

 private:
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, absl::Duration timeout);

  std::shared_ptr<grpc::Channel> channel_;
  std::string token_;
  std::unique_ptr<Cancellation> own_cancellation_;
  Cancellation* cancellation_;
  Mutex mutex_;
  SecureRandom random_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<v1::DatasetService::Stub> datasets_;
  std::unique_ptr<v1::TrainingService::Stub> training_;
  std::unique_ptr<v1::BudgetService::Stub> budgets_;
  std::unique_ptr<v1::OperatorService::Stub> operators_;
  std::unique_ptr<v1::OverviewService::Stub> overviews_;
  std::unique_ptr<v1::ServerService::Stub> server_;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_CONNECTION_H_
