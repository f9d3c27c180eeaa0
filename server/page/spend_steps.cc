#include "server/page/spend_steps.h"

#include <set>
#include <utility>

#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<std::vector<BudgetHead>> ListBudgetHeads(Transaction& transaction) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT d.budget_id, d.tenant, d.name, b.head_sequence FROM datasets d LEFT JOIN budgets b ON "
                        "b.id = d.budget_id WHERE d.budget_id IS NOT NULL ORDER BY d.create_time, d.name",
                        {}));
  std::vector<BudgetHead> heads;
  std::set<std::string> seen;
  for (const Row& row : rows) {
    RowReader reader(row);
    BudgetHead head;
    head.budget_id = reader.Text();
    head.tenant = reader.Text();
    head.dataset = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
    // A lost or bad record is for VerifyChain to report: other ledgers are still read.
    head.head_sequence = reader.OptionalInt().value_or(0);
    if (seen.insert(head.budget_id).second) {
      heads.push_back(std::move(head));
    }
  }
  return heads;
}

absl::StatusOr<std::vector<SpendStep>> ListSpendSteps(Transaction& transaction, const std::string& budget_id,
                                                      int64_t after_sequence, int64_t limit) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT sequence, time, kind, COALESCE(job, ''), units, epsilon, reason FROM ledger_entries "
                        "WHERE budget_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
                        {budget_id, after_sequence, limit}));
  std::vector<SpendStep> steps;
  steps.reserve(rows.size());
  for (const Row& row : rows) {
    RowReader reader(row);
    SpendStep& step = steps.emplace_back();
    step.sequence = reader.Int();
    step.time = absl::FromUnixMicros(reader.Int());
    step.kind = static_cast<v1::LedgerEntry::Kind>(reader.Int32());
    step.job = reader.Text();
    step.units = reader.Int();
    step.epsilon = reader.Real();
    step.reason = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return steps;
}

absl::StatusOr<std::vector<absl::Time>> ListNewestTimes(Transaction& transaction, const std::string& budget_id,
                                                        int64_t limit) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT time FROM ledger_entries WHERE budget_id = $1 ORDER BY sequence DESC LIMIT $2",
                        {budget_id, limit}));
  std::vector<absl::Time> times;
  for (const Row& row : rows) {
    RowReader reader(row);
    times.push_back(absl::FromUnixMicros(reader.Int()));
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return times;
}

}  // namespace dpar
