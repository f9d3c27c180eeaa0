#include "server/store/gathered_transaction.h"

#include <algorithm>
#include <exception>

#include "absl/hash/hash.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/merged_statement.h"
#include "server/store/unavailable.h"

namespace dpar {

absl::Status GatheredTransaction::Stray() {
  strayed_ = true;
  return absl::AbortedError("a statement was not announced");
}

absl::StatusOr<std::vector<Row>> GatheredTransaction::Query(absl::string_view sql,
                                                            const std::vector<Value>& parameters) {
  for (Announced& announced : announced_) {
    if (announced.rows.has_value() && announced.statement.sql == sql && announced.statement.parameters == parameters) {
      return *std::exchange(announced.rows, std::nullopt);
    }
  }
  return Stray();
}

absl::StatusOr<int64_t> GatheredTransaction::Execute(absl::string_view /*sql*/,
                                                     const std::vector<Value>& /*parameters*/) {
  return Stray();
}

absl::Status GatheredTransaction::ExecuteLater(absl::string_view sql, const std::vector<Value>& parameters,
                                               const absl::Status& /*otherwise*/) {
  DPAR_RETURN_IF_ERROR(CheckParameters(parameters));
  // As in a transaction of its own: no answer is older than a change.
  announced_.clear();
  later_.push_back({std::string(sql), parameters});
  return absl::OkStatus();
}

absl::Status GatheredTransaction::QueryAhead(absl::string_view sql, const std::vector<Value>& parameters) {
  DPAR_RETURN_IF_ERROR(CheckParameters(parameters));
  announced_.push_back({{std::string(sql), parameters}, /*guard=*/false, std::nullopt});
  return absl::OkStatus();
}

absl::Status GatheredTransaction::LockAhead(Guard guard, const std::string& name, absl::string_view sql) {
  DPAR_RETURN_IF_ERROR(QueryAhead(sql, {name}));
  announced_.back().guard = true;
  guards_.push_back(absl::HashOf(guard, name));
  return absl::OkStatus();
}

absl::Status GatheredTransaction::Lock(Guard /*guard*/, const std::string& /*name*/) { return Stray(); }

int64_t GatheredTransaction::CountUnseen(const std::string& what) {
  counted_.push_back(what);
  if (tally_ == nullptr) {
    return 0;
  }
  const auto found = tally_->find(what);
  return found == tally_->end() ? 0 : found->second;
}

absl::Status GatheredTransaction::Notify(const std::string& notice) {
  notices_.push_back(notice);
  return absl::OkStatus();
}

// One group on its way.
class Gathering {
 public:
  Gathering(PostgresConnection& connection, absl::string_view begin, const std::vector<GatheredTurn*>& group)
      : connection_(connection), begin_(begin), turns_(group) {}

  bool Run() {
    if (!Ask()) {
      // Nothing was done.
      SendAlone();
      return RollBack();
    }
    for (GatheredTurn* const turn : turns_) {
      RunBody(*turn);
    }
    std::erase_if(turns_, [](const GatheredTurn* turn) {
      return turn->alone || turn->thrown != nullptr || !turn->status.ok() || turn->transaction.later_.empty();
    });
    return turns_.empty() ? RollBack() : Commit();
  }

 private:
  using Statement = PostgresConnection::Statement;
  // Statements of several turns that are sent as one, and whose they are.
  struct Merged {
    Statement statement;
    std::vector<size_t> turns;
  };

  // Statements of all turns in an order that keeps each one's own, equal ones together where that allows it. `next` is
  // the next statement of a turn, or null when it has no more.
  template <typename Next, typename Merge>
  std::vector<Merged> Arrange(const Next& next, const Merge& merge) {
    std::vector<Merged> arranged;
    std::vector<size_t> done(turns_.size(), 0);
    for (size_t first = 0; first < turns_.size();) {
      const Statement* const leading = next(*turns_[first], done[first]);
      if (leading == nullptr) {
        ++first;
        continue;
      }
      std::vector<size_t> same;
      ParameterRows rows;
      for (size_t i = first; i < turns_.size(); ++i) {
        const Statement* const statement = next(*turns_[i], done[i]);
        if (statement != nullptr && statement->sql == leading->sql) {
          same.push_back(i);
          rows.push_back(&statement->parameters);
        }
      }
      std::optional<Statement> merged;
      if (same.size() > 1) {
        merged = merge(leading->sql, rows);
      }
      if (!merged.has_value()) {
        same.resize(1);
      }
      for (const size_t i : same) {
        ++done[i];
      }
      arranged.push_back({merged.has_value() ? *std::move(merged) : *leading, std::move(same)});
    }
    return arranged;
  }

  // Asks for everything that was announced. False when that failed.
  bool Ask() {
    const std::vector<Merged> asked = Arrange(
        [](const GatheredTurn& turn, size_t i) {
          const auto& announced = turn.transaction.announced_;
          return i < announced.size() ? &announced[i].statement : nullptr;
        },
        MergeQueries);
    std::vector<Statement> batch = {{std::string(begin_), {}}};
    for (const Merged& merged : asked) {
      batch.push_back(merged.statement);
    }
    std::vector<PostgresConnection::Result> results;
    if (!connection_.RunAll(batch, results).ok()) {
      return false;
    }
    std::vector<size_t> answered(turns_.size(), 0);
    for (size_t i = 0; i < asked.size(); ++i) {
      if (!HandOut(asked[i], std::move(results[i + 1].rows), answered)) {
        return false;
      }
    }
    return true;
  }

  // Gives each turn its rows of an answer. `answered` counts what each has. False when the answer makes no sense.
  bool HandOut(const Merged& merged, std::vector<Row> rows, std::vector<size_t>& answered) {
    std::optional<std::vector<std::vector<Row>>> split = SplitRows(std::move(rows), merged.turns.size());
    if (!split.has_value()) {
      return false;
    }
    for (size_t i = 0; i < merged.turns.size(); ++i) {
      GatheredTurn& turn = *turns_[merged.turns[i]];
      GatheredTransaction::Announced& announced = turn.transaction.announced_[answered[merged.turns[i]]++];
      announced.rows = std::move((*split)[i]);
      // A guard without a row is held by somebody else, or not there: which of both is found out alone.
      turn.alone = turn.alone || (announced.guard && announced.rows->empty());
    }
    return true;
  }

  void RunBody(GatheredTurn& turn) {
    if (turn.alone) {
      return;
    }
    GatheredTransaction& transaction = turn.transaction;
    transaction.tally_ = &tally_;
    try {
      turn.status = turn.body(transaction);
    } catch (...) {
      turn.thrown = std::current_exception();
      return;
    }
    turn.alone = transaction.strayed_;
    if (!turn.alone && turn.status.ok()) {
      for (const std::string& counted : transaction.counted_) {
        ++tally_[counted];
      }
    }
  }

  bool Commit() {
    const std::vector<Merged> changes = Arrange(
        [](const GatheredTurn& turn, size_t i) {
          const auto& later = turn.transaction.later_;
          return i < later.size() ? &later[i] : nullptr;
        },
        MergeChanges);
    std::vector<Statement> batch;
    for (const Merged& change : changes) {
      batch.push_back(change.statement);
      if (change.turns.size() == 1) {
        batch.back().sql = ChangeOne(batch.back().sql);
      }
    }
    batch.push_back({"COMMIT", {}});
    std::vector<PostgresConnection::Result> results;
    const absl::Status sent = connection_.RunAll(batch, results);
    if (results.size() == batch.size() && results.back().command_tag == "COMMIT") {
      return sent.ok() || RollBack();
    }
    if (!connection_.usable() || absl::IsUnavailable(sent)) {
      // Whether it was committed may not be known. An error of somebody's change is not for all to hear.
      for (GatheredTurn* const turn : turns_) {
        turn->status = absl::IsUnavailable(sent) ? sent : StoreUnavailable("PostgreSQL: the connection was lost");
      }
      return RollBack();
    }
    // Somebody's change failed, and so nobody's was made. Alone, each hears of its own error.
    SendAlone();
    return RollBack();
  }

  void SendAlone() {
    for (GatheredTurn* const turn : turns_) {
      turn->alone = true;
    }
  }

  bool RollBack() { return connection_.usable() && connection_.Run("ROLLBACK", {}).ok(); }

  PostgresConnection& connection_;
  const absl::string_view begin_;
  std::vector<GatheredTurn*> turns_;
  Tally tally_;
};

bool RunGathered(PostgresConnection& connection, absl::string_view begin, const std::vector<GatheredTurn*>& group) {
  return Gathering(connection, begin, group).Run();
}

}  // namespace dpar
