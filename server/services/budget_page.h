// A page of budgets as an answer: ListBudgets and ListSpend have the same fields.
#ifndef DPAR_SERVER_SERVICES_BUDGET_PAGE_H_
#define DPAR_SERVER_SERVICES_BUDGET_PAGE_H_

#include <utility>

#include "server/ledger/ledger.h"

namespace dpar {

template <typename Response>
void MovePage(BudgetPage& page, Response& response) {
  response.mutable_budgets()->Assign(page.budgets.begin(), page.budgets.end());
  response.set_next_page_token(page.next_page_token);
  if (page.fullest.has_value()) {
    *response.mutable_fullest() = *std::move(page.fullest);
  }
}

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_BUDGET_PAGE_H_
