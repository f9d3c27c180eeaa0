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
  // UNAVAILABLE when the server does not answer within some seconds.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& uri);

  explicit PostgresConnection(PGconn* raw) : raw_(raw, &PQfinish) {}

  struct Result {
    std::vector<Row> rows;
    int64_t changed = 0;      // rows that INSERT, UPDATE or DELETE touched
    std::string command_tag;  // "COMMIT", "ROLLBACK", ...
  };
  // Runs one query, prepared on first use. Errors as Transaction::Query; ABORTED when the transaction should run again.
  absl::StatusOr<Result> Run(absl::string_view sql, const std::vector<Value>& parameters);

  [[nodiscard]] bool usable() const { return PQstatus(raw_.get()) == CONNECTION_OK; }

  // Payloads of notices; none after `patience` or once `wake_descriptor` is readable. UNAVAILABLE when disconnected.
  absl::StatusOr<std::vector<std::string>> AwaitNotices(absl::Duration patience, int wake_descriptor);

 private:
  // The statement's name; stays valid.
  absl::StatusOr<const char*> Prepare(absl::string_view sql);

  std::unique_ptr<PGconn, decltype(&PQfinish)> raw_;
  absl::flat_hash_map<std::string, std::unique_ptr<const std::string>> statements_;  // SQL text to its name
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_POSTGRES_CONNECTION_H_
