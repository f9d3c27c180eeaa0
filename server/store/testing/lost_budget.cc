#include "server/store/testing/lost_budget.h"

#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"

namespace dpar::testing {

void LoseBudget(TemporaryStore& store, Engine engine, const std::string& population) {
  const std::string sql = absl::StrCat("DELETE FROM populations WHERE name = '", population, "'");
  if (engine == Engine::kSqlite) {
    // A connection that does not ask for it has no foreign keys.
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(store.directory().Database().c_str(), &raw), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
    sqlite3_close(raw);
    return;
  }
  ASSERT_TRUE(store.database()
                  .Write([&](Transaction& t) -> absl::Status {
                    DPAR_RETURN_IF_ERROR(
                        t.Execute("ALTER TABLE datasets DROP CONSTRAINT datasets_population_fkey", {}).status());
                    return t.Execute(sql, {}).status();
                  })
                  .ok());
}

}  // namespace dpar::testing
