#include "server/page/usage_names.h"

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<UsageNames> ListUsageNames(Transaction& transaction, const UsageFilter& filter, int64_t skip,
                                          int64_t limit) {
  // Names are tenants/{t}/datasets/{d}; the filter is searched in "t/d".
  constexpr absl::string_view kFromWhere =
      "FROM datasets d LEFT JOIN budgets b ON b.id = d.budget_id WHERE d.budget_id IS NOT NULL AND "
      "($1 = '' OR d.tenant = $1) AND REPLACE(SUBSTR(d.name, 9), '/datasets/', '/') LIKE $2 AND "
      "(CAST($3 AS DOUBLE PRECISION) < 0 OR "
      "b.posted_units * 100.0 + b.reserved_units * 100.0 > CAST($3 AS DOUBLE PRECISION) * b.cap_units)";
  const std::string pattern = absl::StrCat("%", filter.text, "%");
  const std::vector<Value> condition = {filter.tenant, pattern, filter.above_percent};
  UsageNames found;
  DPAR_ASSIGN_OR_RETURN(found.total, transaction.QueryInt(absl::StrCat("SELECT COUNT(*) ", kFromWhere), condition));
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT d.name, d.budget_id, d.delete_time ", kFromWhere,
                                     " ORDER BY CASE WHEN b.id IS NULL THEN 0 ELSE 1 END, "
                                     "(b.posted_units * 1.0 + b.reserved_units * 1.0) / (b.cap_units + 1.0) DESC, "
                                     "d.name LIMIT $4 OFFSET $5"),
                        {filter.tenant, pattern, filter.above_percent, limit, skip}));
  for (const Row& row : rows) {
    RowReader reader(row);
    UsageName& name = found.names.emplace_back();
    name.dataset = reader.Text();
    name.budget_id = reader.Text();
    name.deleted = reader.OptionalInt().has_value();
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return found;
}

}  // namespace dpar
