#include "client/sdk/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/sdk/status.h"
#include "core/keepalive.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(60);
// Sealing parses and validates the whole file.
constexpr absl::Duration kFinishTimeout = absl::Hours(2);
constexpr int kAttempts = 4;
// How late a cancellation is noticed while reconnecting.
constexpr absl::Duration kCancelPeriod = absl::Milliseconds(100);
constexpr int kPageSize = 1000;
constexpr int kMaxMessageBytes = 16 << 20;
constexpr int kFirstReconnectMilliseconds = 100;
constexpr int kLongestReconnectMilliseconds = 2000;

template <typename Request>
Request Named(const std::string& name) {
  Request request;
  request.set_name(name);
  return request;
}
template <typename Request>
Request Below(const std::string& parent) {
  Request request;
  request.set_parent(parent);
  return request;
}

// Follows next_page_token to the end. `fetch` answers a request with a list page; `items` picks its rows.
template <typename Item, typename Request, typename Fetch, typename Items>
absl::StatusOr<std::vector<Item>> AllPages(Request request, const Fetch& fetch, const Items& items) {
  std::vector<Item> all;
  request.set_page_size(kPageSize);
  do {
    DPAR_ASSIGN_OR_RETURN(auto page, fetch(request));
    const auto& rows = items(page);
    all.insert(all.end(), rows.begin(), rows.end());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return all;
}

}  // namespace

std::unique_ptr<Connection> Connection::Open(const ConnectOptions& options) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = options.ca_pem;
  tls.pem_cert_chain = options.client_certificate_pem;
  tls.pem_private_key = options.client_key_pem;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, static_cast<int>(absl::ToInt64Milliseconds(kPingPeriod)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, static_cast<int>(absl::ToInt64Milliseconds(kPingTimeout)));
  // A quiet watch has no data between pings; by default gRPC would stop after two of them.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return std::make_unique<Connection>(grpc::CreateCustomChannel(options.server, grpc::SslCredentials(tls), arguments),
                                      options.token, options.cancellation);
}

Connection::Connection(std::shared_ptr<grpc::Channel> channel, std::string token, Cancellation* cancellation)
    : channel_(std::move(channel)),
      token_(std::move(token)),
      own_cancellation_(cancellation == nullptr ? std::make_unique<Cancellation>() : nullptr),
      cancellation_(cancellation == nullptr ? own_cancellation_.get() : cancellation),
      datasets_(v1::DatasetService::NewStub(channel_)),
      training_(v1::TrainingService::NewStub(channel_)),
      budgets_(v1::BudgetService::NewStub(channel_)),
      operators_(v1::OperatorService::NewStub(channel_)),
      overviews_(v1::OverviewService::NewStub(channel_)),
      server_(v1::ServerService::NewStub(channel_)) {}

void Connection::Authorise(grpc::ClientContext& context) const {
  if (!token_.empty()) {
    context.AddMetadata("authorization", absl::StrCat("Bearer ", token_));
  }
}

void Connection::Pause(absl::Duration duration, Cancellation& cancellation) {
  const absl::Time end = absl::Now() + duration;
  while (absl::Now() < end && !cancellation.cancelled()) {
    if (channel_->WaitForConnected(absl::ToChronoTime(std::min(end, absl::Now() + kCancelPeriod)))) {
      cancellation.Sleep(end - absl::Now());
    }
  }
}

absl::Duration Connection::DelayBefore(const absl::Status& status, int attempt) {
  MutexLock lock(&mutex_);
  return RetryDelay(status, attempt, UniformReal(random_));
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Connection::Call(Stub& stub,
                                          grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                          const Request& request, absl::Duration timeout) {
  for (int attempt = 0;; ++attempt) {
    grpc::ClientContext context;
    Authorise(context);
    const Cancellation::Attachment attachment(*cancellation_, context);
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    Response response;
    const absl::Status status = FromGrpcStatus((stub.*method)(&context, request, &response));
    if (status.ok()) {
      return response;
    }
    if (cancellation_->cancelled()) {
      return absl::CancelledError("the call was cancelled");
    }
    if (!absl::IsUnavailable(status) || attempt + 1 >= kAttempts) {
      return status;
    }
    Pause(DelayBefore(status, attempt), *cancellation_);
  }
}

absl::StatusOr<v1::ServerInfo> Connection::GetServerInfo() {
  return Call(*server_, &v1::ServerService::Stub::GetServerInfo, v1::GetServerInfoRequest(), kCallTimeout);
}

absl::StatusOr<v1::Identity> Connection::WhoAmI() {
  return Call(*server_, &v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest(), kCallTimeout);
}

absl::StatusOr<std::vector<v1::SigningKey>> Connection::ListSigningKeys() {
  DPAR_ASSIGN_OR_RETURN(
      const v1::ListSigningKeysResponse response,
      Call(*server_, &v1::ServerService::Stub::ListSigningKeys, v1::ListSigningKeysRequest(), kCallTimeout));
  return std::vector<v1::SigningKey>(response.keys().begin(), response.keys().end());
}

absl::StatusOr<v1::Upload> Connection::OpenUpload(const v1::OpenUploadRequest& request) {
  return Call(*datasets_, &v1::DatasetService::Stub::OpenUpload, request, kCallTimeout);
}

absl::StatusOr<v1::Upload> Connection::GetUpload(const std::string& name) {
  return Call(*datasets_, &v1::DatasetService::Stub::GetUpload, Named<v1::GetUploadRequest>(name), kCallTimeout);
}

absl::StatusOr<v1::FinishUploadResponse> Connection::FinishUpload(const v1::FinishUploadRequest& request) {
  return Call(*datasets_, &v1::DatasetService::Stub::FinishUpload, request, kFinishTimeout);
}

absl::StatusOr<v1::Dataset> Connection::GetDataset(const std::string& name) {
  return Call(*datasets_, &v1::DatasetService::Stub::GetDataset, Named<v1::GetDatasetRequest>(name), kCallTimeout);
}

absl::Status Connection::DeleteDataset(const v1::DeleteDatasetRequest& request) {
  return Call(*datasets_, &v1::DatasetService::Stub::DeleteDataset, request, kCallTimeout).status();
}

absl::StatusOr<std::vector<v1::Dataset>> Connection::ListDatasets(const std::string& tenant) {
  return AllPages<v1::Dataset>(
      Below<v1::ListDatasetsRequest>(tenant),
      [this](const auto& request) {
        return Call(*datasets_, &v1::DatasetService::Stub::ListDatasets, request, kCallTimeout);
      },
      [](const auto& page) -> const auto& { return page.datasets(); });
}

absl::StatusOr<v1::Job> Connection::CreateJob(const v1::CreateJobRequest& request) {
  return Call(*training_, &v1::TrainingService::Stub::CreateJob, request, kCallTimeout);
}

absl::StatusOr<v1::Job> Connection::GetJob(const std::string& name) {
  return Call(*training_, &v1::TrainingService::Stub::GetJob, Named<v1::GetJobRequest>(name), kCallTimeout);
}

absl::StatusOr<std::vector<v1::Job>> Connection::ListJobs(const std::string& tenant) {
  return AllPages<v1::Job>(
      Below<v1::ListJobsRequest>(tenant),
      [this](const auto& request) {
        return Call(*training_, &v1::TrainingService::Stub::ListJobs, request, kCallTimeout);
      },
      [](const auto& page) -> const auto& { return page.jobs(); });
}

absl::StatusOr<v1::Job> Connection::CancelJob(const v1::CancelJobRequest& request) {
  return Call(*training_, &v1::TrainingService::Stub::CancelJob, request, kCallTimeout);
}

absl::StatusOr<v1::Certificate> Connection::GetCertificate(const std::string& job) {
  return Call(*training_, &v1::TrainingService::Stub::GetCertificate, Named<v1::GetCertificateRequest>(job),
              kCallTimeout);
}

absl::StatusOr<v1::Budget> Connection::GetBudget(const std::string& name) {
  return Call(*budgets_, &v1::BudgetService::Stub::GetBudget, Named<v1::GetBudgetRequest>(name), kCallTimeout);
}

absl::StatusOr<Connection::Budgets> Connection::ListBudgets(const std::string& tenant, bool sums_only) {
  Budgets all;
  auto first = Below<v1::ListBudgetsRequest>(tenant);
  first.set_sums_only(sums_only);
  const auto fetch = [this](const auto& request) {
    return Call(*budgets_, &v1::BudgetService::Stub::ListBudgets, request, kCallTimeout);
  };
  // Every list page names the fullest budget.
  const auto items = [&all](const auto& page) -> const auto& {
    if (page.has_fullest()) {
      all.fullest = page.fullest();
    }
    return page.budgets();
  };
  DPAR_ASSIGN_OR_RETURN(all.budgets, AllPages<v1::Budget>(first, fetch, items));
  return all;
}

absl::StatusOr<std::vector<v1::PopulationUsage>> Connection::ListUsage(const std::string& tenant) {
  return AllPages<v1::PopulationUsage>(
      Below<v1::ListUsageRequest>(tenant),
      [this](const auto& request) {
        return Call(*overviews_, &v1::OverviewService::Stub::ListUsage, request, kCallTimeout);
      },
      [](const auto& page) -> const auto& { return page.usage(); });
}

absl::StatusOr<v1::Budget> Connection::MergePopulation(const v1::MergePopulationRequest& request) {
  return Call(*budgets_, &v1::BudgetService::Stub::MergePopulation, request, kCallTimeout);
}

absl::StatusOr<std::vector<v1::LedgerEntry>> Connection::ListLedgerEntries(const std::string& population) {
  return AllPages<v1::LedgerEntry>(
      Below<v1::ListLedgerEntriesRequest>(population),
      [this](const auto& request) {
        return Call(*budgets_, &v1::BudgetService::Stub::ListLedgerEntries, request, kCallTimeout);
      },
      [](const auto& page) -> const auto& { return page.entries(); });
}

absl::StatusOr<v1::VerifyChainResponse> Connection::VerifyChain(const std::string& population) {
  return VerifyChain(Named<v1::VerifyChainRequest>(population));
}

absl::StatusOr<v1::VerifyChainResponse> Connection::VerifyChain(const v1::VerifyChainRequest& request) {
  return Call(*budgets_, &v1::BudgetService::Stub::VerifyChain, request, kCallTimeout);
}

absl::StatusOr<v1::Tenant> Connection::CreateTenant(const v1::CreateTenantRequest& request) {
  return Call(*operators_, &v1::OperatorService::Stub::CreateTenant, request, kCallTimeout);
}

absl::StatusOr<std::vector<v1::Tenant>> Connection::ListTenants() {
  return AllPages<v1::Tenant>(
      v1::ListTenantsRequest(),
      [this](const auto& request) {
        return Call(*operators_, &v1::OperatorService::Stub::ListTenants, request, kCallTimeout);
      },
      [](const auto& page) -> const auto& { return page.tenants(); });
}

absl::StatusOr<v1::CreateTokenResponse> Connection::CreateToken(const v1::CreateTokenRequest& request) {
  return Call(*operators_, &v1::OperatorService::Stub::CreateToken, request, kCallTimeout);
}

absl::StatusOr<v1::CreateTokenResponse> Connection::RotateToken(const v1::RotateTokenRequest& request) {
  return Call(*operators_, &v1::OperatorService::Stub::RotateToken, request, kCallTimeout);
}

absl::StatusOr<std::vector<v1::Token>> Connection::ListTokens(const std::string& parent) {
  return AllPages<v1::Token>(
      Below<v1::ListTokensRequest>(parent),
      [this](const auto& request) {
        return Call(*operators_, &v1::OperatorService::Stub::ListTokens, request, kCallTimeout);
      },
      [](const auto& page) -> const auto& { return page.tokens(); });
}

absl::StatusOr<v1::Token> Connection::RevokeToken(const std::string& name) {
  return Call(*operators_, &v1::OperatorService::Stub::RevokeToken, Named<v1::RevokeTokenRequest>(name), kCallTimeout);
}

absl::StatusOr<v1::Budget> Connection::SetBudgetCap(const v1::SetBudgetCapRequest& request) {
  return Call(*operators_, &v1::OperatorService::Stub::SetBudgetCap, request, kCallTimeout);
}

absl::StatusOr<v1::LedgerEntry> Connection::AdjustLedger(const v1::AdjustLedgerRequest& request) {
  return Call(*operators_, &v1::OperatorService::Stub::AdjustLedger, request, kCallTimeout);
}

}  // namespace dpar
