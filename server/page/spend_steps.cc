#include "server/page/spend_steps.h"

#include <utility>

#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<std::vector<BudgetHead>> ListBudgetHeads(Transaction& transaction) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT name, tenant, head_sequence, create_time FROM populations UNION ALL "
                        "SELECT d.population, d.tenant, NULL, MIN(d.create_time) FROM datasets d LEFT JOIN populations "
                        "p ON p.name = d.population WHERE d.population IS NOT NULL AND p.name IS NULL "
                        "GROUP BY d.population, d.tenant ORDER BY 4, 1",
                        {}));
  std::vector<BudgetHead> heads;
  for (const Row& row : rows) {
    RowReader reader(row);
    BudgetHead& head = heads.emplace_back();
    head.population = reader.Text();
    head.tenant = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
    // A lost or bad record is for VerifyChain to report: other ledgers are still read.
    head.head_sequence = reader.OptionalInt().value_or(0);
  }
  return heads;
}

absl::StatusOr<std::vector<SpendStep>> ListSpendSteps(Transaction& transaction, const std::string& population,
                                                      int64_t after_sequence, int64_t limit) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT l.sequence, l.time, l.kind, COALESCE(l.job, ''), COALESCE(j.dataset, ''), l.units, "
                        "l.epsilon, l.reason FROM ledger_entries l LEFT JOIN jobs j ON j.name = l.job "
                        "WHERE l.population = $1 AND l.sequence > $2 ORDER BY l.sequence LIMIT $3",
                        {population, after_sequence, limit}));
  std::vector<SpendStep> steps;
  steps.reserve(rows.size());
  for (const Row& row : rows) {
    RowReader reader(row);
    SpendStep& step = steps.emplace_back();
    step.sequence = reader.Int();
    step.time = absl::FromUnixMicros(reader.Int());
    step.kind = static_cast<v1::LedgerEntry::Kind>(reader.Int32());
    step.job = reader.Text();
    step.dataset = reader.Text();
    step.units = reader.Int();
    step.epsilon = reader.Real();
    step.reason = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return steps;
}

absl::StatusOr<std::vector<absl::Time>> ListNewestTimes(Transaction& transaction, const std::string& population,
                                                        int64_t limit) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT time FROM ledger_entries WHERE population = $1 ORDER BY sequence DESC LIMIT $2",
                        {population, limit}));
  std::vector<absl::Time> times;
  for (const Row& row : rows) {
    RowReader reader(row);
    times.push_back(absl::FromUnixMicros(reader.Int()));
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return times;
}

}  // namespace dpar
