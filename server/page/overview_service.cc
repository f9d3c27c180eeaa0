#include "server/page/overview_service.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/page/recent_jobs.h"
#include "server/resource_name.h"
#include "server/services/page_size.h"
#include "server/services/tenant_exists.h"
#include "server/services/watch.h"
#include "server/store/read_from.h"
#include "server/witness/witness.h"

namespace dpar {
namespace {

constexpr size_t kMaxFilter = 128;
constexpr int64_t kDefaultShortPage = 25;
constexpr int64_t kMaxShortPage = 100;

// Only characters of names: none has a meaning in a pattern.
absl::Status CheckFilter(const std::string& filter) {
  const bool fits = filter.size() <= kMaxFilter && std::all_of(filter.begin(), filter.end(), [](char c) {
                      const auto byte = static_cast<unsigned char>(c);
                      return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '-' || c == '/';
                    });
  return fits ? absl::OkStatus()
              : InvalidField("filter",
                             "filter must be a part of {tenant}/{population} or {tenant}/{dataset}: up to 128 "
                             "characters of [a-z0-9-/]");
}

bool IsBudget(const std::string& parent) { return absl::StrContains(parent, "/populations/"); }

// Drops messages that reveal how a job ended before its post is marked (server/witness). `ended` gives its name, if
// any.
template <typename Messages, typename Ended>
void KeepTellable(Witness& witness, Messages& messages, const Ended& ended) {
  std::vector<std::string> jobs;
  for (const auto& message : messages) {
    if (const std::string job = ended(message); !job.empty()) {
      jobs.push_back(job);
    }
  }
  if (witness.CoverJobs(jobs).ok()) {
    return;
  }
  const auto untold = std::remove_if(messages.begin(), messages.end(), [&](const auto& message) {
    const std::string job = ended(message);
    return !job.empty() && !witness.CoverJobs({job}).ok();
  });
  messages.erase(untold, messages.end());
}

}  // namespace

template <typename Request, typename Response>
grpc::Status OverviewServiceImpl::Admit(grpc::ServerContext& context, absl::string_view method, const Request& request,
                                        Response& response) const {
  return parts_.gate.Admit(context, method, [&](const Identity& caller) { return Answer(caller, request, response); });
}

grpc::Status OverviewServiceImpl::GetOverview(grpc::ServerContext* context, const v1::GetOverviewRequest* request,
                                              v1::Overview* response) {
  return Admit(*context, "OverviewService/GetOverview", *request, *response);
}

grpc::Status OverviewServiceImpl::ListUsage(grpc::ServerContext* context, const v1::ListUsageRequest* request,
                                            v1::ListUsageResponse* response) {
  return Admit(*context, "OverviewService/ListUsage", *request, *response);
}

grpc::Status OverviewServiceImpl::GetSpendHistory(grpc::ServerContext* context,
                                                  const v1::GetSpendHistoryRequest* request,
                                                  v1::SpendHistory* response) {
  return Admit(*context, "OverviewService/GetSpendHistory", *request, *response);
}

grpc::Status OverviewServiceImpl::ListRecentJobs(grpc::ServerContext* context, const v1::ListRecentJobsRequest* request,
                                                 v1::ListRecentJobsResponse* response) {
  return Admit(*context, "OverviewService/ListRecentJobs", *request, *response);
}

grpc::Status OverviewServiceImpl::ListLedgerTail(grpc::ServerContext* context, const v1::ListLedgerTailRequest* request,
                                                 v1::ListLedgerTailResponse* response) {
  return Admit(*context, "OverviewService/ListLedgerTail", *request, *response);
}

absl::Status OverviewServiceImpl::Answer(const Identity& caller, const v1::GetOverviewRequest& request,
                                         v1::Overview& response) const {
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantOrAll(parts_.database, caller, request.parent()));
  DPAR_ASSIGN_OR_RETURN(response, overviews_.Get(caller, tenant, absl::Now()));
  for (v1::Attention& attention : *response.mutable_attention()) {
    if (attention.kind() == v1::Attention::JOB_FAILED) {
      KeepTellable(parts_.witness, *attention.mutable_items(),
                   [](const v1::AttentionItem& item) { return item.resource(); });
    }
  }
  return absl::OkStatus();
}

absl::Status OverviewServiceImpl::Answer(const Identity& caller, const v1::ListUsageRequest& request,
                                         v1::ListUsageResponse& response) const {
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantOrAll(parts_.database, caller, request.parent()));
  DPAR_RETURN_IF_ERROR(CheckFilter(request.filter()));
  DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request.page_size()));
  DPAR_ASSIGN_OR_RETURN(const int64_t skip, PositionOfToken(request.page_token(), 0));
  DPAR_ASSIGN_OR_RETURN(
      response, overviews_.ListUsage({.tenant = tenant, .text = request.filter()}, skip, page_size, absl::Now()));
  std::vector<std::string> ended;
  for (const v1::PopulationUsage& usage : response.usage()) {
    if (IsTerminal(usage.last_job().state())) {
      ended.push_back(usage.last_job().name());
    }
  }
  const bool all = parts_.witness.CoverJobs(ended).ok();
  for (v1::PopulationUsage& usage : *response.mutable_usage()) {
    if (!all && IsTerminal(usage.last_job().state()) && !parts_.witness.CoverJobs({usage.last_job().name()}).ok()) {
      usage.mutable_last_job()->clear_state();
    }
  }
  return absl::OkStatus();
}

absl::Status OverviewServiceImpl::Answer(const Identity& caller, const v1::GetSpendHistoryRequest& request,
                                         v1::SpendHistory& response) const {
  if (IsBudget(request.parent())) {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("parent", request.parent()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    DPAR_ASSIGN_OR_RETURN(response, overviews_.HistoryOf(name.name));
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantOrAll(parts_.database, caller, request.parent()));
  DPAR_ASSIGN_OR_RETURN(response, overviews_.History(tenant));
  return absl::OkStatus();
}

absl::Status OverviewServiceImpl::Answer(const Identity& caller, const v1::ListRecentJobsRequest& request,
                                         v1::ListRecentJobsResponse& response) const {
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantOrAll(parts_.database, caller, request.parent()));
  DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request.page_size(), kDefaultShortPage, kMaxShortPage));
  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, ReadFrom(parts_.database, [&](Transaction& transaction) {
                          return dpar::ListRecentJobs(transaction, tenant, page_size);
                        }));
  response.mutable_jobs()->Assign(jobs.begin(), jobs.end());
  KeepTellable(parts_.witness, *response.mutable_jobs(),
               [](const v1::Job& job) { return IsTerminal(job.state()) ? job.name() : std::string(); });
  return absl::OkStatus();
}

absl::Status OverviewServiceImpl::Answer(const Identity& caller, const v1::ListLedgerTailRequest& request,
                                         v1::ListLedgerTailResponse& response) const {
  DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request.page_size(), kDefaultShortPage, kMaxShortPage));
  if (IsBudget(request.parent())) {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("parent", request.parent()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    DPAR_ASSIGN_OR_RETURN(const int64_t before,
                          PositionOfToken(request.page_token(), std::numeric_limits<int64_t>::max()));
    DPAR_ASSIGN_OR_RETURN(response, overviews_.TailOf(name.name, before, page_size));
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantOrAll(parts_.database, caller, request.parent()));
  if (!request.page_token().empty()) {
    return InvalidField("page_token", "page_token must be empty unless parent is one budget");
  }
  DPAR_ASSIGN_OR_RETURN(response, overviews_.Tail(tenant, page_size));
  return absl::OkStatus();
}

}  // namespace dpar
