#include "server/services/budget_service.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/ledger/ledger.h"
#include "server/resource_name.h"
#include "server/services/page_size.h"
#include "server/services/tenant_exists.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"

namespace dpar {

grpc::Status BudgetServiceImpl::GetBudget(grpc::ServerContext* context, const v1::GetBudgetRequest* request,
                                          v1::Budget* response) {
  return parts_.gate.Admit(*context, "BudgetService/GetBudget",
                           [&](const Identity& caller) { return Answer(caller, *request, *response); });
}

absl::Status BudgetServiceImpl::Answer(const Identity& caller, const v1::GetBudgetRequest& request,
                                       v1::Budget& response) const {
  DPAR_ASSIGN_OR_RETURN(const BudgetName name, ParseBudgetName("name", request.name()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_ASSIGN_OR_RETURN(response,
                        ReadFrom(parts_.database, [&](Transaction& transaction) -> absl::StatusOr<v1::Budget> {
                          DPAR_ASSIGN_OR_RETURN(const std::string id, DatasetBudget(transaction, name.dataset));
                          return dpar::GetBudget(transaction, id);
                        }));
  response.set_name(name.name);
  return absl::OkStatus();
}

grpc::Status BudgetServiceImpl::ListBudgets(grpc::ServerContext* context, const v1::ListBudgetsRequest* request,
                                            v1::ListBudgetsResponse* response) {
  return parts_.gate.Admit(*context, "BudgetService/ListBudgets", [&](const Identity& caller) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantOrAll(parts_.database, caller, request->parent()));
    DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request->page_size()));
    DPAR_ASSIGN_OR_RETURN(BudgetPage page, ReadFrom(parts_.database, [&](Transaction& transaction) {
                            return dpar::ListBudgets(transaction, tenant, page_size, request->page_token());
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
  DPAR_ASSIGN_OR_RETURN(const BudgetName name, ParseBudgetName("parent", request.parent()));
  DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
  DPAR_ASSIGN_OR_RETURN(const int64_t page_size, PageSize(request.page_size()));
  // Entries have no gaps, so a list page starts after a sequence number.
  DPAR_ASSIGN_OR_RETURN(const int64_t after, PositionOfToken(request.page_token(), 0));
  using Entries = std::vector<v1::LedgerEntry>;
  DPAR_ASSIGN_OR_RETURN(Entries entries,
                        ReadFrom(parts_.database, [&](Transaction& transaction) -> absl::StatusOr<Entries> {
                          DPAR_ASSIGN_OR_RETURN(const std::string id, DatasetBudget(transaction, name.dataset));
                          return ListEntries(transaction, id, after, page_size + 1);
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
    DPAR_ASSIGN_OR_RETURN(const BudgetName name, ParseBudgetName("name", request->name()));
    DPAR_RETURN_IF_ERROR(Authorise(caller, name.tenant, name.name));
    std::vector<EntryPosition> known;
    if (request->known_sequence() != 0 || !request->known_hash().empty()) {
      DPAR_RETURN_IF_ERROR(
          ValidateRange("known_sequence", request->known_sequence(), int64_t{1}, std::numeric_limits<int64_t>::max()));
      known.push_back({request->known_sequence(), request->known_hash()});
    }
    DPAR_ASSIGN_OR_RETURN(
        *response, ReadFrom(parts_.database, [&](Transaction& transaction) -> absl::StatusOr<v1::VerifyChainResponse> {
          DPAR_ASSIGN_OR_RETURN(const std::string id, DatasetBudget(transaction, name.dataset));
          return dpar::VerifyChain(transaction, id, known);
        }));
    return absl::OkStatus();
  });
}

}  // namespace dpar
