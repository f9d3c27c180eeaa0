// Several callers' transactions in one of PostgreSQL's. Each announces everything that it reads before it runs, its
// guards too (Database::WriteGathered). All that the group announced is asked for in one trip, then the bodies run one
// after the other, and all their changes travel with the commit in a second trip; equal statements are merged.
//
// Why that is as good as one transaction each. No two of a group have a guard in common, so they may run side by side,
// in any order of their statements that keeps each one's own: here all reads come before all changes. A body sees
// nothing of the others and reads nothing that was not announced; one that tries runs again, alone. So does each of a
// group whose changes fail, since nobody's were made then. One that is refused changes nothing, and was refused for
// what is committed and held.
//
// A group never waits for a guard, which others would have to wait for too: it skips what is held elsewhere, and
// whoever needs that runs alone. So groups cannot wait for each other either.
#ifndef DPAR_SERVER_STORE_GATHERED_TRANSACTION_H_
#define DPAR_SERVER_STORE_GATHERED_TRANSACTION_H_

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/database.h"
#include "server/store/postgres_connection.h"
#include "server/store/turn_line.h"

namespace dpar {

// How often each thing was counted by those of a group that are to be committed.
using Tally = absl::flat_hash_map<std::string, int64_t>;

// What one body of a group sees.
class GatheredTransaction final : public Transaction {
 public:
  struct Announced {
    PostgresConnection::Statement statement;
    bool guard = false;
    std::optional<std::vector<Row>> rows;  // once they were asked for, until they are taken
  };

  absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) override;
  absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) override;
  absl::Status ExecuteLater(absl::string_view sql, const std::vector<Value>& parameters,
                            const absl::Status& otherwise) override;
  absl::Status QueryAhead(absl::string_view sql, const std::vector<Value>& parameters) override;
  absl::Status LockAhead(Guard guard, const std::string& name, absl::string_view sql) override;
  absl::Status Lock(Guard guard, const std::string& name) override;
  [[nodiscard]] absl::string_view for_update() const override { return skip_locked(); }
  [[nodiscard]] absl::string_view skip_locked() const override { return " FOR NO KEY UPDATE SKIP LOCKED"; }
  int64_t CountUnseen(const std::string& what) override;
  absl::Status Notify(const std::string& notice) override;

  // Hashes of the guards that were announced.
  [[nodiscard]] const std::vector<size_t>& guards() const { return guards_; }
  // Once the body was run and committed.
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

 private:
  friend class Gathering;

  // The body asks for what was not announced.
  absl::Status Stray();

  std::vector<Announced> announced_;
  std::vector<size_t> guards_;
  std::vector<PostgresConnection::Statement> later_;
  std::vector<std::string> notices_;
  const Tally* tally_ = nullptr;      // of those before it
  std::vector<std::string> counted_;  // by this one
  bool strayed_ = false;              // whatever the body made of it
};

// One caller of a group.
struct GatheredTurn : Turn {
  explicit GatheredTurn(const Database::Body& its_body) : body(its_body) {}

  const Database::Body& body;
  GatheredTransaction transaction;

  // The answer.
  absl::Status status;
  std::exception_ptr thrown;  // by the body
  bool alone = false;         // nothing was done: it is to run alone
};

// Runs a group whose reads were announced, and fills the answers in. Returns whether the connection can be used again.
bool RunGathered(PostgresConnection& connection, absl::string_view begin, const std::vector<GatheredTurn*>& group);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_GATHERED_TRANSACTION_H_
