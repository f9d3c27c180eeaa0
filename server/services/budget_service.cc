#include "server/services/budget_service.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/ledger/ledger.h"
#include "server/ledger/merge.h"
#include "server/observe/metrics.h"
#include "server/resource_name.h"
#include "server/seam.h"
#include "server/services/page_size.h"
#include "server/services/subject.h"
#include "server/services/tenant_exists.h"
#include "server/store/message_text.h"
#include "server/store/once.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr size_t kMaxMergeReason = 500;

}  // namespace

grpc::Status BudgetServiceImpl::GetBudget(grpc::ServerContext* context, const v1::GetBudgetRequest* request,
                                          v1::Budget* response) {
  return parts_.gate.Admit(*context, "BudgetService/GetBudget",
                           [&](const Identity& caller) { return Answer(caller, *request, *response); });
}

absl::Status BudgetServiceImpl::Answer(const Identity& caller, const v1::GetBudgetRequest& request,
                                       v1::Budget& response) const {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_ASSIGN_OR_RETURN(response, ReadFrom(parts_.database, [&](Transaction& transaction) {
                          return dpar::GetBudget(transaction, name.name);
                        }));
  return absl::OkStatus();
}

grpc::Status BudgetServiceImpl::ListBudgets(grpc::ServerContext* context, const v1::ListBudgetsRequest* request,
                                            v1::ListBudgetsResponse* response) {
  return parts_.gate.Admit(*context, "BudgetService/ListBudgets", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantOrAll(parts_.database, caller, request->parent()));
    DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request->page_size()));
    DPAR_ASSIGN_OR_RETURN(BudgetPage page, ReadFrom(parts_.database, [&](Transaction& transaction) {
                            return dpar::ListBudgets(transaction, tenant, page_size, request->page_token(),
                                                     request->sums_only() ? Equivalents::kWithout : Equivalents::kWith);
                          }));
    response->mutable_budgets()->Assign(page.budgets.begin(), page.budgets.end());
    response->set_next_page_token(page.next_page_token);
    if (page.fullest.has_value()) {
      *response->mutable_fullest() = *std::move(page.fullest);
    }
    return absl::OkStatus();
  });
}

grpc::Status BudgetServiceImpl::ListLedgerEntries(grpc::ServerContext* context,
                                                  const v1::ListLedgerEntriesRequest* request,
                                                  v1::ListLedgerEntriesResponse* response) {
  return parts_.gate.Admit(*context, "BudgetService/ListLedgerEntries",
                           [&](const Identity& caller) { return Answer(caller, *request, *response); });
}

absl::Status BudgetServiceImpl::Answer(const Identity& caller, const v1::ListLedgerEntriesRequest& request,
                                       v1::ListLedgerEntriesResponse& response) const {
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("parent", request.parent()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request.page_size()));
  // Entries have no gaps, so a list page starts after a sequence number.
  DPAR_ASSIGN_OR_RETURN(const int64_t after, PositionOfToken(request.page_token(), 0));
  using Entries = std::vector<v1::LedgerEntry>;
  DPAR_ASSIGN_OR_RETURN(Entries entries, ReadFrom(parts_.database, [&](Transaction& transaction) {
                          return ListEntries(transaction, name.name, after, page_size + 1);
                        }));
  if (static_cast<int64_t>(entries.size()) > page_size) {
    entries.resize(static_cast<size_t>(page_size));
    response.set_next_page_token(absl::StrCat(entries.back().sequence()));
  }
  response.mutable_entries()->Assign(entries.begin(), entries.end());
  return absl::OkStatus();
}

grpc::Status BudgetServiceImpl::VerifyChain(grpc::ServerContext* context, const v1::VerifyChainRequest* request,
                                            v1::VerifyChainResponse* response) {
  return parts_.gate.Admit(*context, "BudgetService/VerifyChain", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("name", request->name()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    std::vector<EntryPosition> known;
    if (request->known_sequence() != 0 || !request->known_hash().empty()) {
      DPAR_RETURN_IF_ERROR(
          ValidateRange("known_sequence", request->known_sequence(), int64_t{1}, std::numeric_limits<int64_t>::max()));
      known.push_back({request->known_sequence(), request->known_hash()});
    }
    DPAR_ASSIGN_OR_RETURN(*response, ReadFrom(parts_.database, [&](Transaction& transaction) {
      return dpar::VerifyChain(transaction, name.name, known);
    }));
    return absl::OkStatus();
  });
}

grpc::Status BudgetServiceImpl::MergePopulation(grpc::ServerContext* context, const v1::MergePopulationRequest* request,
                                                v1::Budget* response) {
  return parts_.gate.Admit(*context, "BudgetService/MergePopulation", About(*request, *response),
                           [&](const Identity& caller) { return Answer(caller, *request, *response); });
}

absl::Status BudgetServiceImpl::Answer(const Identity& caller, const v1::MergePopulationRequest& request,
                                       v1::Budget& response) const {
  DPAR_ASSIGN_OR_RETURN(const ResourceName from, ParsePopulationName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, from.tenant, from.name));
  DPAR_ASSIGN_OR_RETURN(const ResourceName into, ParsePopulationName("into", request.into()));
  if (into.tenant != from.tenant) {
    return ResourceNotFound(into.name);
  }
  DPAR_RETURN_IF_ERROR(ValidateText("reason", request.reason(), 1, kMaxMergeReason));
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  const absl::Time now = absl::Now();
  const RequestKey key = MakeRequestKey(from.tenant, "MergePopulation", request.request_id(), request);
  DPAR_ASSIGN_OR_RETURN(const MergePrices prices, PriceMerge(parts_.database, from.name, into.name));
  DPAR_RETURN_IF_ERROR(TimeLedgerCommit(parts_.metrics, LedgerCommit::kOperator, [&] {
    return Once(parts_.database, key, now, response, [&](Transaction& transaction) -> absl::Status {
      DPAR_RETURN_IF_ERROR(Merge(transaction, from.name, into.name, prices, request.reason(), {caller.token, now},
                                 request.allow_closing() ? Closing::kAllowed : Closing::kRefused));
      response.set_name(into.name);
      return absl::OkStatus();
    });
  }));
  DPAR_SEAM("merge-committed");
  // Before an owner is told that they are one; also when the answer is a remembered one.
  DPAR_RETURN_IF_ERROR(parts_.witness.CoverAll(from.name));
  DPAR_SEAM("merge-end-marked");
  DPAR_RETURN_IF_ERROR(parts_.witness.CoverAll(into.name));
  // The accountant must not hold the write lock, so only the name is remembered, and the budget is as it is now.
  DPAR_ASSIGN_OR_RETURN(response, ReadFrom(parts_.database, [&](Transaction& transaction) {
                          return dpar::GetBudget(transaction, into.name);
                        }));
  return absl::OkStatus();
}

}  // namespace dpar
