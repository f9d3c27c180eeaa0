#include "server/page/usage_names.h"

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kMaxDatasets = 100;
// Names are tenants/{t}/populations/{p} and tenants/{t}/datasets/{d}; the filter is searched in "t/p" and "t/d".
// Datasets name their population also where its record is lost.
constexpr absl::string_view kFromWhere =
    "FROM (SELECT DISTINCT population AS name, tenant FROM datasets WHERE population IS NOT NULL) d "
    "LEFT JOIN populations b ON b.name = d.name WHERE ($1 = '' OR d.tenant = $1) AND "
    "(REPLACE(SUBSTR(d.name, 9), '/populations/', '/') LIKE $2 OR EXISTS (SELECT 1 FROM datasets e WHERE "
    "e.population = d.name AND REPLACE(SUBSTR(e.name, 9), '/datasets/', '/') LIKE $2)) AND "
    "(CAST($3 AS DOUBLE PRECISION) < 0 OR "
    "b.posted_units * 100.0 + b.reserved_units * 100.0 > CAST($3 AS DOUBLE PRECISION) * b.cap_units)";

}  // namespace

absl::StatusOr<UsageNames> ListUsageNames(Transaction& transaction, const UsageFilter& filter, int64_t skip,
                                          int64_t limit) {
  const std::string pattern = absl::StrCat("%", filter.text, "%");
  UsageNames found;
  DPAR_ASSIGN_OR_RETURN(found.total, transaction.QueryInt(absl::StrCat("SELECT COUNT(*) ", kFromWhere),
                                                          {filter.tenant, pattern, filter.above_percent}));
  DPAR_ASSIGN_OR_RETURN(
      found.populations,
      transaction.QueryTexts(absl::StrCat("SELECT d.name ", kFromWhere,
                                          " ORDER BY CASE WHEN b.name IS NULL THEN 0 ELSE 1 END, "
                                          "(b.posted_units * 1.0 + b.reserved_units * 1.0) / (b.cap_units + 1.0) DESC, "
                                          "d.name LIMIT $4 OFFSET $5"),
                             {filter.tenant, pattern, filter.above_percent, limit, skip}));
  return found;
}

absl::StatusOr<std::vector<v1::DatasetSpend>> ListUsageDatasets(Transaction& transaction,
                                                                const std::string& population) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT name, delete_time FROM datasets WHERE population = $1 "
                                          "ORDER BY create_time, name LIMIT $2",
                                          {population, kMaxDatasets}));
  std::vector<v1::DatasetSpend> datasets;
  for (const Row& row : rows) {
    RowReader reader(row);
    v1::DatasetSpend& dataset = datasets.emplace_back();
    dataset.set_dataset(reader.Text());
    dataset.set_deleted(reader.OptionalInt().has_value());
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return datasets;
}

}  // namespace dpar
