// The engine for a fleet: a pool of connections to one PostgreSQL, which any number of servers share.
#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/busy_names.h"
#include "server/store/database.h"
#include "server/store/gathered_transaction.h"
#include "server/store/merged_statement.h"
#include "server/store/postgres_connection.h"
#include "server/store/postgres_notices.h"
#include "server/store/turn_line.h"
#include "server/store/unavailable.h"

namespace dpar {
namespace {

// Of one server, besides three that listen, send notices and hold names, and two for groups. PostgreSQL admits 100 by
// default.
constexpr int kMaxConnections = 16;
constexpr absl::Duration kConnectionWait = absl::Seconds(10);
// How often a transaction runs before a conflict is reported, and the longest pause after the first.
constexpr int kMaxRuns = 12;
constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
// How often a name that another process holds is asked for again.
constexpr absl::Duration kHoldPeriod = absl::Milliseconds(20);
// Transactions that are gathered into one (gathered_transaction.h), and how long the first waits for others who were
// gathered with it before: of eight callers, one would else go alone every other time, for little less than all of
// them. When some wait, a second group is worth its own cost: one is worked on while the other waits for the server or
// its disk.
constexpr size_t kMaxGroup = 64;
constexpr size_t kSecondGroup = 4;
constexpr absl::Duration kPatience = absl::Microseconds(100);
// A group whose connection hangs holds up those that wait behind it for no longer than this.
constexpr absl::Duration kLongestWait = absl::Seconds(1);
constexpr absl::string_view kBeginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED";

// NO KEY: names and ids never change, so rows that refer to a guard can be added while it is held.
constexpr absl::string_view LockStatement(Guard guard) {
  switch (guard) {
    case Guard::kTenant:
      return "SELECT 1 FROM tenants WHERE name = $1 FOR NO KEY UPDATE";
    case Guard::kDataset:
      return "SELECT 1 FROM datasets WHERE name = $1 FOR NO KEY UPDATE";
    case Guard::kJob:
      return "SELECT 1 FROM jobs WHERE name = $1 FOR NO KEY UPDATE";
    case Guard::kBudget:
      break;
  }
  return "SELECT 1 FROM budgets WHERE id = $1 FOR NO KEY UPDATE";
}

absl::Status Unavailable(absl::string_view message) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, message);
}

// Statements wait until an answer is needed, and then travel together: the beginning of the transaction with the first
// queries, changes with the next query or with the commit.
class PostgresTransaction final : public Transaction {
 public:
  PostgresTransaction(PostgresConnection& connection, absl::string_view begin)
      : connection_(connection), begin_(begin) {}

  absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) override {
    const auto is_same = [&](const Statement& statement) {
      return statement.sql == sql && statement.parameters == parameters;
    };
    if (std::any_of(ahead_.begin(), ahead_.end(), is_same)) {
      DPAR_RETURN_IF_ERROR(Send({}).status());
    }
    const auto answered = std::find_if(answered_.begin(), answered_.end(),
                                       [&](const Answered& candidate) { return is_same(candidate.statement); });
    if (answered != answered_.end()) {
      std::vector<Row> rows = std::move(answered->rows);
      answered_.erase(answered);
      return rows;
    }
    DPAR_ASSIGN_OR_RETURN(PostgresConnection::Result result, Run(sql, parameters));
    return std::move(result.rows);
  }

  absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) override {
    Forget();
    DPAR_ASSIGN_OR_RETURN(const PostgresConnection::Result result, Run(sql, parameters));
    return result.changed;
  }

  absl::Status ExecuteLater(absl::string_view sql, const std::vector<Value>& parameters,
                            const absl::Status& otherwise) override {
    DPAR_RETURN_IF_ERROR(CheckParameters(parameters));
    Forget();
    later_.push_back({std::string(sql), parameters});
    otherwise_.push_back(otherwise);
    return absl::OkStatus();
  }

  absl::Status QueryAhead(absl::string_view sql, const std::vector<Value>& parameters) override {
    DPAR_RETURN_IF_ERROR(CheckParameters(parameters));
    ahead_.push_back({std::string(sql), parameters});
    return absl::OkStatus();
  }

  absl::Status LockAhead(Guard /*guard*/, const std::string& name, absl::string_view sql) override {
    return QueryAhead(sql, {name});
  }

  // Runs what waits, and commits. A transaction that ran nothing has nothing to commit. The commit of one in which a
  // statement failed is answered by a rollback, and no error.
  absl::Status Commit() {
    Forget();
    if (!sent_ && later_.empty()) {
      return absl::OkStatus();
    }
    // A commit never travels with the beginning: when the connection is lost on the first trip it must be certain that
    // nothing was done.
    if (!begun_) {
      DPAR_RETURN_IF_ERROR(Send({}).status());
    }
    DPAR_ASSIGN_OR_RETURN(const PostgresConnection::Result result, Run("COMMIT", {}));
    return result.command_tag == "COMMIT" ? absl::OkStatus() : Unavailable("PostgreSQL rolled a transaction back");
  }

  absl::Status Lock(Guard guard, const std::string& name) override {
    return Run(LockStatement(guard), {name}).status();
  }
  [[nodiscard]] absl::string_view for_update() const override { return " FOR NO KEY UPDATE"; }
  [[nodiscard]] absl::string_view skip_locked() const override { return " FOR NO KEY UPDATE SKIP LOCKED"; }

  // It is alone.
  int64_t CountUnseen(const std::string& /*what*/) override { return 0; }

  absl::Status Notify(const std::string& notice) override {
    notices_.push_back(notice);
    return absl::OkStatus();
  }
  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

  // Whether a statement failed in a way that running everything again may mend, whatever the body made of it.
  [[nodiscard]] bool conflicted() const { return conflicted_; }
  // Whether the server was asked for anything.
  [[nodiscard]] bool sent() const { return sent_; }
  // Whether the connection was lost on the first trip, as one is that idled while its server went away: whatever ran
  // was not committed.
  [[nodiscard]] bool stale() const { return sent_ && !begun_ && !connection_.usable(); }

 private:
  using Statement = PostgresConnection::Statement;
  struct Answered {
    Statement statement;
    std::vector<Row> rows;
  };

  void Forget() {
    ahead_.clear();
    answered_.clear();
  }

  absl::StatusOr<PostgresConnection::Result> Run(absl::string_view sql, const std::vector<Value>& parameters) {
    DPAR_RETURN_IF_ERROR(CheckParameters(parameters));
    DPAR_ASSIGN_OR_RETURN(std::vector<PostgresConnection::Result> results, Send({{std::string(sql), parameters}}));
    return std::move(results.back());
  }

  // Runs what waits and then `last`, in one trip; all results. The error of a change stays: whatever the body makes of
  // it, nothing more is run or committed.
  absl::StatusOr<std::vector<PostgresConnection::Result>> Send(std::vector<Statement> last) {
    DPAR_RETURN_IF_ERROR(unchanged_);
    std::vector<Statement> batch;
    if (!begun_) {
      batch.push_back({std::string(begin_), {}});
    }
    const std::vector<MergedRun> queries = MergeRuns(ahead_);
    const size_t first_change = batch.size();
    for (const Statement& change : later_) {
      batch.push_back({ChangeOne(change.sql), change.parameters});
    }
    const size_t first_query = batch.size();
    for (const MergedRun& query : queries) {
      batch.push_back(query.statement);
    }
    std::move(last.begin(), last.end(), std::back_inserter(batch));
    const std::vector<absl::Status> otherwise = std::exchange(otherwise_, {});
    const std::vector<Statement> asked = std::exchange(ahead_, {});
    later_.clear();
    sent_ = true;
    std::vector<PostgresConnection::Result> results;
    const absl::Status failed = connection_.RunAll(batch, results);
    begun_ = begun_ || !results.empty();
    conflicted_ = conflicted_ || absl::IsAborted(failed);
    if (const size_t failing = results.size(); !failed.ok() && failing < first_query) {
      unchanged_ = absl::IsOutOfRange(failed) && failing >= first_change ? otherwise[failing - first_change] : failed;
      return unchanged_;
    }
    DPAR_RETURN_IF_ERROR(failed);
    for (size_t i = 0; i < queries.size(); ++i) {
      DPAR_RETURN_IF_ERROR(Keep(asked, queries[i], std::move(results[first_query + i].rows)));
    }
    return results;
  }

  // Keeps the answers to announced queries.
  absl::Status Keep(const std::vector<Statement>& asked, const MergedRun& run, std::vector<Row> rows) {
    std::optional<std::vector<std::vector<Row>>> split = SplitRows(std::move(rows), run.count);
    if (!split.has_value()) {
      return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "PostgreSQL gave an answer without a question");
    }
    for (size_t i = 0; i < run.count; ++i) {
      answered_.push_back({asked[run.first + i], std::move((*split)[i])});
    }
    return absl::OkStatus();
  }

  PostgresConnection& connection_;
  const absl::string_view begin_;
  bool sent_ = false;
  bool begun_ = false;
  bool conflicted_ = false;
  std::vector<Statement> later_;
  std::vector<absl::Status> otherwise_;  // of each of them
  absl::Status unchanged_;
  std::vector<Statement> ahead_;    // announced, and not asked yet
  std::vector<Answered> answered_;  // announced and asked, and not taken yet
  std::vector<std::string> notices_;
};

// Connections that are lent to one caller at a time.
class Pool {
 public:
  Pool(std::string uri, PostgresConnection::Plans plans) : uri_(std::move(uri)), plans_(plans) {}

  // UNAVAILABLE when all are taken for too long, or none can be made.
  absl::StatusOr<std::unique_ptr<PostgresConnection>> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const absl::MutexLock lock(&mutex_);
      const auto has_room = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return lent_ < kMaxConnections; };
      if (!mutex_.AwaitWithTimeout(absl::Condition(&has_room), kConnectionWait)) {
        return Unavailable("the store is busy; try again");
      }
      ++lent_;
      if (!idle_.empty()) {
        std::unique_ptr<PostgresConnection> connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
      }
    }
    absl::StatusOr<std::unique_ptr<PostgresConnection>> opened = PostgresConnection::Open(uri_, plans_);
    if (!opened.ok()) {
      Return(nullptr);
    }
    return opened;
  }

  // Takes a connection back, or the news that it is gone. One was lost: so are those that idled meanwhile.
  void Return(std::unique_ptr<PostgresConnection> connection) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    --lent_;
    if (connection != nullptr && connection->usable()) {
      idle_.push_back(std::move(connection));
    } else {
      idle_.clear();
    }
  }

 private:
  const std::string uri_;
  const PostgresConnection::Plans plans_;
  absl::Mutex mutex_;
  int lent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<PostgresConnection>> idle_ ABSL_GUARDED_BY(mutex_);
};

// Names held by this process: among its own callers by BusyNames, among processes by locks of one PostgreSQL session,
// which end with it.
class SharedNames {
 public:
  explicit SharedNames(std::string uri) : uri_(std::move(uri)) {}

  absl::StatusOr<std::unique_ptr<NameHold>> Take(const std::string& name, absl::Duration patience) {
    const absl::Time deadline = absl::Now() + patience;
    DPAR_ASSIGN_OR_RETURN(std::unique_ptr<NameHold> local, local_.Take(name, patience));
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool taken, Try("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", name));
      if (taken) {
        return std::make_unique<Hold>(*this, name, std::move(local));
      }
      if (absl::Now() >= deadline) {
        return NameIsBusy();
      }
      absl::SleepFor(kHoldPeriod);
    }
  }

 private:
  class Hold final : public NameHold {
   public:
    Hold(SharedNames& names, std::string name, std::unique_ptr<NameHold> local)
        : names_(names), name_(std::move(name)), local_(std::move(local)) {}
    ~Hold() override {
      // When the session is lost, so is the lock.
      names_.Try("SELECT pg_advisory_unlock(hashtextextended($1, 0))", name_).status().IgnoreError();
    }

   private:
    SharedNames& names_;
    const std::string name_;
    const std::unique_ptr<NameHold> local_;
  };

  absl::StatusOr<bool> Try(absl::string_view sql, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    if (session_ == nullptr || !session_->usable()) {
      DPAR_ASSIGN_OR_RETURN(session_, PostgresConnection::Open(uri_));
    }
    DPAR_ASSIGN_OR_RETURN(const PostgresConnection::Result result, session_->Run(sql, {name}));
    RowReader reader(result.rows.at(0));
    const bool done = reader.Int() != 0;
    DPAR_RETURN_IF_ERROR(reader.status());
    return done;
  }

  const std::string uri_;
  BusyNames local_;
  absl::Mutex mutex_;
  std::unique_ptr<PostgresConnection> session_ ABSL_GUARDED_BY(mutex_);
};

class PostgresDatabase final : public Database {
 public:
  explicit PostgresDatabase(const std::string& uri)
      : uri_(uri),
        pool_(uri, PostgresConnection::Plans::kUsual),
        group_pool_(uri, PostgresConnection::Plans::kByIndexes),
        names_(uri),
        sender_(uri) {}

  absl::Status Write(const Body& body) override {
    for (int run = 1;; ++run) {
      bool conflicted = false;
      absl::Status status = RunFresh(kBeginWrite, body, conflicted);
      if (status.ok() || !conflicted) {
        return status;
      }
      if (run == kMaxRuns) {
        return Unavailable("the store is busy; try again");
      }
      absl::SleepFor(kFirstPause * run);
    }
  }

  absl::Status WriteGathered(const Body& ahead, const Body& body) override {
    GatheredTurn turn(body);
    DPAR_RETURN_IF_ERROR(ahead(turn.transaction));
    turn.keys = turn.transaction.guards();
    if (const std::vector<GatheredTurn*> group = turns_.Join(turn); !group.empty()) {
      Lead(group);
    }
    if (turn.thrown != nullptr) {
      std::rethrow_exception(turn.thrown);
    }
    if (turn.alone || turn.left) {
      return Database::WriteGathered(ahead, body);
    }
    if (turn.status.ok()) {
      sender_.Send(turn.transaction.notices());
    }
    return turn.status;
  }

  absl::Status Read(const Body& body) override {
    bool conflicted = false;
    return RunFresh("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", body, conflicted);
  }

  absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, absl::Duration patience) override {
    return names_.Take(name, patience);
  }

  void Listen(Listener listener) override {
    listener_.reset();
    if (listener) {
      listener_ = std::make_unique<NoticeListener>(uri_, std::move(listener));
    }
  }

  [[nodiscard]] bool shared() const override { return true; }

 private:
  // Runs a transaction on a connection that works. One that idled may have been lost: then all that idled are dropped,
  // and the body, of which nothing was committed, runs again on a new one.
  absl::Status RunFresh(absl::string_view begin, const Body& body, bool& conflicted) {
    bool stale = false;
    absl::Status status = RunOnce(begin, body, conflicted, stale);
    return stale ? RunOnce(begin, body, conflicted, stale) : status;
  }

  absl::Status RunOnce(absl::string_view begin, const Body& body, bool& conflicted, bool& stale) {
    DPAR_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection, pool_.Take());
    bool settled = false;
    const absl::Cleanup give_back = [&] { GiveBack(pool_, std::move(connection), settled); };
    PostgresTransaction transaction(*connection, begin);
    absl::Status status = body(transaction);
    if (status.ok()) {
      status = transaction.Commit();
    }
    conflicted = transaction.conflicted();
    stale = transaction.stale();
    settled = status.ok() || !transaction.sent() || connection->Run("ROLLBACK", {}).ok();
    if (status.ok()) {
      sender_.Send(transaction.notices());
    }
    return status;
  }

  static void GiveBack(Pool& pool, std::unique_ptr<PostgresConnection> connection, bool settled) {
    if (!settled) {
      // Its state is not known. Closing it rolls back whatever was open.
      connection.reset();
    }
    pool.Return(std::move(connection));
  }

  void Lead(const std::vector<GatheredTurn*>& group) {
    absl::Status status;
    try {
      status = RunGroup(group);
    } catch (...) {  // of memory: nobody may be left waiting
      status = out_of_memory_;
    }
    if (!status.ok()) {
      for (GatheredTurn* const turn : group) {
        turn->status = status;
      }
    }
    turns_.Answer(group);
  }

  absl::Status RunGroup(const std::vector<GatheredTurn*>& group) {
    DPAR_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection, group_pool_.Take());
    bool settled = false;
    const absl::Cleanup give_back = [&] { GiveBack(group_pool_, std::move(connection), settled); };
    settled = RunGathered(*connection, kBeginWrite, group);
    return absl::OkStatus();
  }

  const std::string uri_;
  Pool pool_;
  Pool group_pool_;  // of those that lead groups
  SharedNames names_;
  NoticeSender sender_;
  TurnLine<GatheredTurn> turns_{
      {.max_group = kMaxGroup, .second_group = kSecondGroup, .longest_wait = kLongestWait, .patience = kPatience}};
  const absl::Status out_of_memory_ = StoreUnavailable("memory ran out");  // made while there is some
  std::unique_ptr<NoticeListener> listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenPostgres(const std::string& uri) {
  // To say at once when it cannot be reached.
  DPAR_RETURN_IF_ERROR(PostgresConnection::Open(uri).status());
  return std::make_unique<PostgresDatabase>(uri);
}

}  // namespace dpar
