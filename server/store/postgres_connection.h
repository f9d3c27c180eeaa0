// One connection to PostgreSQL: statements with typed parameters and results, and its errors as statuses.
#ifndef DPAR_SERVER_STORE_POSTGRES_CONNECTION_H_
#define DPAR_SERVER_STORE_POSTGRES_CONNECTION_H_

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/database.h"

namespace dpar {

// Not thread-safe.
class PostgresConnection {
 public:
  // How statements are planned: as PostgreSQL does unless told otherwise, or once for all parameters and by indexes.
  // Statements over arrays of parameters need the second: they are kept for as long as the connection, and one that was
  // planned while its table was small would go on reading all of it when it is large, or be planned anew for each
  // array.
  enum class Plans { kUsual, kByIndexes };
  // UNAVAILABLE when the server does not answer within some seconds.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& uri, Plans plans = Plans::kUsual);

  explicit PostgresConnection(PGconn* raw) : raw_(raw, &PQfinish) {}

  struct Result {
    std::vector<Row> rows;
    int64_t changed = 0;      // rows that INSERT, UPDATE or DELETE touched
    std::string command_tag;  // "COMMIT", "ROLLBACK", ...
  };
  // Runs one statement, prepared on first use. A violated constraint is ALREADY_EXISTS, a lost connection or a full
  // disk UNAVAILABLE, and ABORTED a deadlock or conflict, after which the transaction should run again. Parameters as
  // in CheckParameters.
  absl::StatusOr<Result> Run(absl::string_view sql, const std::vector<Value>& parameters);

  struct Statement {
    std::string sql;
    std::vector<Value> parameters;
  };
  // The same for several statements, which travel together. Their parameters were checked. The first error is returned,
  // and none of the rest was run then; `results` are of those before it. A division by zero is OUT_OF_RANGE.
  absl::Status RunAll(const std::vector<Statement>& statements, std::vector<Result>& results);

  // False once the connection was lost.
  [[nodiscard]] bool usable() const { return PQstatus(raw_.get()) == CONNECTION_OK; }

  // Waits for a notice on a channel that the connection listens to: its payload, or nothing within `patience`, or once
  // `wake_descriptor` can be read. UNAVAILABLE when the connection is lost.
  absl::StatusOr<std::vector<std::string>> AwaitNotices(absl::Duration patience, int wake_descriptor);

 private:
  // Its name, which stays.
  absl::StatusOr<const char*> Prepare(absl::string_view sql);
  // What comes back for `count` statements in a pipeline.
  absl::Status Collect(size_t count, std::vector<Result>& results);

  std::unique_ptr<PGconn, decltype(&PQfinish)> raw_;
  absl::flat_hash_map<std::string, std::unique_ptr<const std::string>> statements_;  // SQL text to its name
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_POSTGRES_CONNECTION_H_
