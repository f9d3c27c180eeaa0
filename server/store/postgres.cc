// The engine for a fleet: a pool of connections to one PostgreSQL, which any number of servers share.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/mutex.h"
#include "core/status_macros.h"
#include "server/steady_time.h"
#include "server/store/busy_names.h"
#include "server/store/database.h"
#include "server/store/postgres_connection.h"
#include "server/store/postgres_notices.h"
#include "server/store/unavailable.h"

namespace dpar {
namespace {

// Per server, besides one that listens and one that holds names. PostgreSQL admits 100 by default.
constexpr int kMaxConnections = 16;
// Of them for transactions that write: a read may hold its connection while the accountant computes.
constexpr int kWriteConnections = 4;
constexpr absl::Duration kConnectionWait = absl::Seconds(10);
// Runs of a transaction before a conflict is reported, and the longest pause after the first.
constexpr int kMaxRuns = 12;
constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
// How often a name that another process holds is asked for again.
constexpr absl::Duration kHoldPeriod = absl::Milliseconds(20);
constexpr absl::string_view kBeginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED";
constexpr absl::string_view kNotify = "SELECT pg_notify('dpar', $1)";
constexpr absl::string_view kBeginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

// NO KEY: names and ids never change, so rows that refer to a held guard can be added.
constexpr absl::string_view LockStatement(Guard guard) {
  switch (guard) {
    case Guard::kTenant:
      return "SELECT 1 FROM tenants WHERE name = $1 FOR NO KEY UPDATE";
    case Guard::kDataset:
      return "SELECT 1 FROM datasets WHERE name = $1 FOR NO KEY UPDATE";
    case Guard::kJob:
      return "SELECT 1 FROM jobs WHERE name = $1 FOR NO KEY UPDATE";
    case Guard::kPopulation:
      break;
  }
  return "SELECT 1 FROM populations WHERE name = $1 FOR NO KEY UPDATE";
}

absl::Status Unavailable(absl::string_view message) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, message);
}

class PostgresTransaction final : public Transaction {
 public:
  explicit PostgresTransaction(PostgresConnection& connection) : connection_(connection) {}

  absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) override {
    DPAR_ASSIGN_OR_RETURN(PostgresConnection::Result result, Run(sql, parameters));
    return std::move(result.rows);
  }

  absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) override {
    DPAR_ASSIGN_OR_RETURN(const PostgresConnection::Result result, Run(sql, parameters));
    return result.changed;
  }

  absl::Status Lock(Guard guard, const std::string& name) override {
    return Run(LockStatement(guard), {name}).status();
  }
  [[nodiscard]] absl::string_view for_update() const override { return " FOR NO KEY UPDATE"; }
  [[nodiscard]] absl::string_view skip_locked() const override { return " FOR NO KEY UPDATE SKIP LOCKED"; }

  absl::Status Notify(const std::string& notice) override {
    notices_.push_back(notice);
    return absl::OkStatus();
  }
  // After the commit: PostgreSQL commits transactions that notify one after the other, and a notice may be lost.
  void SendNotices() {
    for (const std::string& notice : notices_) {
      connection_.Run(kNotify, {notice}).status().IgnoreError();
    }
  }

  // PostgreSQL answers COMMIT of a failed transaction with a rollback and no error.
  absl::Status Commit() {
    DPAR_ASSIGN_OR_RETURN(const PostgresConnection::Result result, Run("COMMIT", {}));
    return result.command_tag == "COMMIT" ? absl::OkStatus() : Unavailable("PostgreSQL rolled a transaction back");
  }

  // Whether running the transaction again may succeed, whatever the body returned.
  [[nodiscard]] bool conflicted() const { return conflicted_; }

 private:
  absl::StatusOr<PostgresConnection::Result> Run(absl::string_view sql, const std::vector<Value>& parameters) {
    absl::StatusOr<PostgresConnection::Result> result = connection_.Run(sql, parameters);
    conflicted_ = conflicted_ || absl::IsAborted(result.status());
    return result;
  }

  PostgresConnection& connection_;
  bool conflicted_ = false;
  std::vector<std::string> notices_;
};

class Pool {
 public:
  explicit Pool(std::string uri) : uri_(std::move(uri)) {}

  // UNAVAILABLE when all are taken for too long, or none can be made.
  absl::StatusOr<std::unique_ptr<PostgresConnection>> Take(bool writes) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const MutexLock lock(&mutex_);
      const int most = writes ? kMaxConnections : kMaxConnections - kWriteConnections;
      const auto is_free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return lent_ < most; };
      if (!mutex_.AwaitWithTimeout(Condition(&is_free), kConnectionWait)) {
        return Unavailable("the store is busy; try again");
      }
      ++lent_;
      if (!idle_.empty()) {
        std::unique_ptr<PostgresConnection> connection = std::move(idle_.back());
        idle_.pop_back();
        return connection;
      }
    }
    absl::StatusOr<std::unique_ptr<PostgresConnection>> opened = PostgresConnection::Open(uri_);
    if (!opened.ok()) {
      Return(nullptr);
    }
    return opened;
  }

  // Takes a connection back, or null when it was lost: then the idle ones are dropped too.
  void Return(std::unique_ptr<PostgresConnection> connection) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    --lent_;
    if (connection != nullptr && connection->usable()) {
      idle_.push_back(std::move(connection));
    } else {
      idle_.clear();
    }
  }

 private:
  const std::string uri_;
  Mutex mutex_;
  int lent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<PostgresConnection>> idle_ ABSL_GUARDED_BY(mutex_);
};

// Names held by this process: BusyNames among its callers, locks of one PostgreSQL session among processes.
class SharedNames {
 public:
  explicit SharedNames(std::string uri) : uri_(std::move(uri)) {}

  absl::StatusOr<std::unique_ptr<NameHold>> Take(const std::string& name, absl::Duration patience) {
    const absl::Time deadline = SteadyNow() + patience;
    DPAR_ASSIGN_OR_RETURN(std::unique_ptr<NameHold> local, local_.Take(name, patience));
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool taken, Try("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", name));
      if (taken) {
        return std::make_unique<Hold>(*this, name, std::move(local));
      }
      if (SteadyNow() >= deadline) {
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
    const MutexLock lock(&mutex_);
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
  Mutex mutex_;
  std::unique_ptr<PostgresConnection> session_ ABSL_GUARDED_BY(mutex_);
};

class PostgresDatabase final : public Database {
 public:
  explicit PostgresDatabase(const std::string& uri) : uri_(uri), pool_(uri), names_(uri) {}

  absl::Status Write(const Body& body) override {
    for (int run = 1;; ++run) {
      bool conflicted = false;
      absl::Status status = RunOnce(kBeginWrite, body, conflicted);
      if (status.ok() || !conflicted) {
        return status;
      }
      if (run == kMaxRuns) {
        return Unavailable("the store is busy; try again");
      }
      absl::SleepFor(kFirstPause * run);
    }
  }

  absl::Status Read(const Body& body) override {
    bool conflicted = false;
    return RunOnce(kBeginRead, body, conflicted);
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
  // A connection with a begun transaction. If an idle one turns out to be lost, drops all idle ones and opens another.
  absl::StatusOr<std::unique_ptr<PostgresConnection>> Begin(absl::string_view begin) {
    for (bool retried = false;; retried = true) {
      DPAR_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection, pool_.Take(begin == kBeginWrite));
      const absl::Status begun = connection->Run(begin, {}).status();
      if (begun.ok()) {
        return connection;
      }
      const bool lost = !connection->usable();
      pool_.Return(std::move(connection));
      if (!lost || retried) {
        return begun;
      }
    }
  }

  absl::Status RunOnce(absl::string_view begin, const Body& body, bool& conflicted) {
    DPAR_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection, Begin(begin));
    bool settled = false;
    const absl::Cleanup give_back = [&] {
      if (!settled) {
        // In an unknown state. Closing rolls back what was open.
        connection.reset();
      }
      pool_.Return(std::move(connection));
    };
    PostgresTransaction transaction(*connection);
    absl::Status status = body(transaction);
    if (status.ok()) {
      status = transaction.Commit();
    }
    conflicted = transaction.conflicted();
    settled = status.ok() || connection->Run("ROLLBACK", {}).ok();
    if (status.ok()) {
      transaction.SendNotices();
    }
    return status;
  }

  const std::string uri_;
  Pool pool_;
  SharedNames names_;
  std::unique_ptr<NoticeListener> listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenPostgres(const std::string& uri) {
  DPAR_RETURN_IF_ERROR(PostgresConnection::Open(uri).status());
  return std::make_unique<PostgresDatabase>(uri);
}

}  // namespace dpar
