// The schema, as a list of steps: step i brings version i to i + 1. A released step is never changed.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/database.h"

namespace dpar {
namespace {

// Times are microseconds since 1970 in UTC. Messages are their JSON until another version says otherwise, keys and
// salts hex.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE tenants (
  name TEXT PRIMARY KEY,
  content_key TEXT NOT NULL,
  create_time BIGINT NOT NULL);
CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  parent TEXT NOT NULL,
  role BIGINT NOT NULL,
  purpose TEXT NOT NULL,
  salt TEXT NOT NULL,
  hash TEXT NOT NULL,
  create_time BIGINT NOT NULL,
  expire_time BIGINT,
  revoke_time BIGINT);
CREATE INDEX tokens_by_parent ON tokens (parent, create_time, id);
CREATE TABLE budgets (
  id TEXT PRIMARY KEY,
  cap_epsilon DOUBLE PRECISION NOT NULL,
  cap_delta DOUBLE PRECISION NOT NULL,
  renyi_order BIGINT NOT NULL,
  cap_units BIGINT NOT NULL CHECK (cap_units >= 0),
  posted_units BIGINT NOT NULL CHECK (posted_units >= 0),
  reserved_units BIGINT NOT NULL CHECK (reserved_units >= 0),
  live_events BIGINT NOT NULL CHECK (live_events >= 0),
  head_sequence BIGINT NOT NULL,
  head_hash TEXT NOT NULL);
CREATE TABLE ledger_entries (
  budget_id TEXT NOT NULL REFERENCES budgets (id),
  sequence BIGINT NOT NULL,
  time BIGINT NOT NULL,
  kind BIGINT NOT NULL,
  job TEXT,
  actor TEXT NOT NULL,
  units BIGINT NOT NULL,
  epsilon DOUBLE PRECISION NOT NULL,
  delta DOUBLE PRECISION NOT NULL,
  event TEXT NOT NULL,
  reason TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (budget_id, sequence),
  UNIQUE (budget_id, job, kind));
CREATE TABLE datasets (
  name TEXT PRIMARY KEY,
  tenant TEXT NOT NULL REFERENCES tenants (name),
  create_time BIGINT NOT NULL,
  delete_time BIGINT,
  node_count BIGINT NOT NULL,
  feature_count BIGINT NOT NULL,
  class_count BIGINT NOT NULL,
  is_public BIGINT NOT NULL,
  content_digest TEXT NOT NULL,
  budget_id TEXT REFERENCES budgets (id));
CREATE INDEX datasets_by_tenant ON datasets (tenant, create_time, name);
CREATE TABLE contents (
  tenant TEXT NOT NULL REFERENCES tenants (name),
  content_digest TEXT NOT NULL,
  budget_id TEXT NOT NULL REFERENCES budgets (id),
  PRIMARY KEY (tenant, content_digest));
CREATE TABLE uploads (
  name TEXT PRIMARY KEY,
  tenant TEXT NOT NULL REFERENCES tenants (name),
  declared TEXT NOT NULL,
  state BIGINT NOT NULL,
  create_time BIGINT NOT NULL);
CREATE INDEX uploads_by_tenant ON uploads (tenant, state);
CREATE TABLE answers (
  scope TEXT NOT NULL,
  request_id TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  answer TEXT NOT NULL,
  create_time BIGINT NOT NULL,
  PRIMARY KEY (scope, request_id));
CREATE TABLE jobs (
  name TEXT PRIMARY KEY,
  tenant TEXT NOT NULL REFERENCES tenants (name),
  dataset TEXT NOT NULL REFERENCES datasets (name),
  budget_id TEXT REFERENCES budgets (id),
  spec TEXT NOT NULL,
  plan TEXT NOT NULL,
  state BIGINT NOT NULL,
  failure TEXT NOT NULL,
  create_time BIGINT NOT NULL,
  start_time BIGINT,
  end_time BIGINT,
  attempts BIGINT NOT NULL,
  cancel_requested BIGINT NOT NULL);
CREATE INDEX jobs_by_tenant ON jobs (tenant, create_time, name);
CREATE INDEX jobs_by_state ON jobs (state, create_time, name);
CREATE INDEX jobs_by_dataset ON jobs (dataset, state);
CREATE TABLE outputs (
  job TEXT PRIMARY KEY REFERENCES jobs (name),
  weights_sha256 TEXT NOT NULL,
  weights_bytes BIGINT NOT NULL,
  script_sha256 TEXT NOT NULL,
  script_bytes BIGINT NOT NULL,
  envelope TEXT NOT NULL)
)sql";

// The released, noisy accuracy of a job that succeeded, where one was asked for.
constexpr const char* kVersion2 = "ALTER TABLE jobs ADD COLUMN evaluation TEXT";

// Leases: `lease` counts how often a job was leased and is the fencing token of the attempt that runs. Size of a
// dataset's file, rounded up to a power of two; what a job is expected to need. `left_units` is what was left of the
// budget once the job was reserved; before this version it stood in the plan. `request_fingerprint` is that of the
// request which made the job, whose name follows from the request's id; before this version its answer was remembered.
// Every index that a reservation does not touch is a page less to write: one holds jobs that started, one jobs that
// ended, and a dataset's live jobs are found among its tenant's. (An index of jobs in one state would have SQLite plan
// every query by state again whenever it is run, to see which state is asked for.)
constexpr const char* kVersion3 = R"sql(
ALTER TABLE jobs ADD COLUMN priority BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN memory_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN not_before BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN lease BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN lease_owner TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN lease_expire_time BIGINT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN progress TEXT;
ALTER TABLE jobs ADD COLUMN left_units BIGINT;
ALTER TABLE jobs ADD COLUMN request_fingerprint TEXT NOT NULL DEFAULT '';
DROP INDEX jobs_by_state;
DROP INDEX jobs_by_dataset;
CREATE INDEX jobs_to_lease ON jobs (state, tenant, priority DESC, create_time, name);
CREATE INDEX jobs_by_start ON jobs (tenant, start_time) WHERE start_time IS NOT NULL;
CREATE INDEX jobs_by_dataset ON jobs (dataset) WHERE end_time IS NOT NULL;
ALTER TABLE outputs ADD COLUMN lease BIGINT NOT NULL DEFAULT 0;
ALTER TABLE datasets ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0;
CREATE INDEX uploads_by_state ON uploads (state, name);
CREATE INDEX answers_by_time ON answers (create_time)
)sql";

// Scopes are names of v1::Scope with commas between them; none is all. Of the tokens with the same certificate_uri at
// most one is not revoked, which the index enforces and by which callers are found.
constexpr const char* kVersion4 = R"sql(
ALTER TABLE tokens ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE tokens ADD COLUMN last_use_time BIGINT;
ALTER TABLE tokens ADD COLUMN certificate_uri TEXT;
CREATE UNIQUE INDEX tokens_by_certificate ON tokens (certificate_uri) WHERE revoke_time IS NULL
)sql";

// From here on, a job's messages (spec, plan, evaluation, progress) are packed (message_text.h), which programs of
// version 4 cannot read. Rows that have their JSON stay as they are.
//
// PostgreSQL also drops the references of what every job writes. For each it looks a row up and locks it, which jobs of
// one tenant then share; SQLite only looks. Rows that others refer to are never removed (a dataset is marked as
// deleted), and a reservation and a release hold the rows that theirs name, so the references guard nothing that could
// happen.
constexpr const char* kVersion5OfPostgres = R"sql(
ALTER TABLE jobs DROP CONSTRAINT jobs_tenant_fkey;
ALTER TABLE jobs DROP CONSTRAINT jobs_dataset_fkey;
ALTER TABLE jobs DROP CONSTRAINT jobs_budget_id_fkey;
ALTER TABLE ledger_entries DROP CONSTRAINT ledger_entries_budget_id_fkey;
ALTER TABLE outputs DROP CONSTRAINT outputs_job_fkey
)sql";

// The degree promise of a dataset, where its owner made one.
constexpr const char* kVersion6 = "ALTER TABLE datasets ADD COLUMN max_degree BIGINT";

// Why no job is admitted on a budget; empty for one that is as it should be (server/witness). A budget's content is
// what its mark is kept under.
constexpr const char* kVersion7 = R"sql(
ALTER TABLE budgets ADD COLUMN frozen_reason TEXT NOT NULL DEFAULT '';
CREATE INDEX budgets_frozen ON budgets (id) WHERE frozen_reason <> '';
CREATE INDEX contents_by_budget ON contents (budget_id)
)sql";

// Ids of the witness directories that the store was served with, oldest first (server/witness/pairing.h).
constexpr const char* kVersion8 = R"sql(
CREATE TABLE witness_ids (
  number BIGINT PRIMARY KEY,
  id TEXT NOT NULL,
  time BIGINT NOT NULL,
  reason TEXT NOT NULL)
)sql";
// A certificate is 5 to 9 kB, mostly base64, and compressing it took longer than the rest of what ends a job.
constexpr const char* kVersion8OfPostgres = "ALTER TABLE outputs ALTER COLUMN envelope SET STORAGE EXTERNAL";

// The smallest degree promise of a dataset with this budget, deleted ones too: the graphs that the cap is about. Kept
// here, so that what reads a budget reads it with it.
constexpr const char* kVersion9 = R"sql(
ALTER TABLE budgets ADD COLUMN max_degree BIGINT;
UPDATE budgets SET max_degree = (SELECT MIN(datasets.max_degree) FROM datasets WHERE datasets.budget_id = budgets.id)
)sql";

struct Step {
  const char* both = "";
  const char* postgres = "";
};
constexpr std::array<Step, kSchemaVersion> kSteps = {{{kVersion1},
                                                      {kVersion2},
                                                      {kVersion3},
                                                      {kVersion4},
                                                      {"", kVersion5OfPostgres},
                                                      {kVersion6},
                                                      {kVersion7},
                                                      {kVersion8, kVersion8OfPostgres},
                                                      {kVersion9}}};

// Two servers that start at once on an empty store.
constexpr absl::Duration kMigrationPatience = absl::Minutes(1);

absl::Status RunStatements(Transaction& transaction, absl::string_view text) {
  for (const absl::string_view statement : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    DPAR_RETURN_IF_ERROR(transaction.Execute(statement, {}).status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Migrate(Database& database) { return MigrateTo(database, kSchemaVersion); }

absl::Status CheckSchema(Transaction& transaction) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, transaction.Query("SELECT version FROM schema_version", {}));
  const int64_t version = rows.empty() ? 0 : RowReader(rows[0]).Int();
  if (version == kSchemaVersion) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kFailedPrecondition, v1::STORE_CORRUPT,
      absl::StrCat("the store has schema version ", version, " and this program works with ", kSchemaVersion, "; ",
                   version < kSchemaVersion ? "`dpard init` brings it there" : "run a newer dpard"));
}

absl::Status MigrateTo(Database& database, int64_t target) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<NameHold> hold, database.Hold("schema", kMigrationPatience));
  const bool postgres = database.shared();
  return database.Write([target, postgres](Transaction& transaction) -> absl::Status {
    DPAR_RETURN_IF_ERROR(
        transaction.Execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)", {}).status());
    DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, transaction.Query("SELECT version FROM schema_version", {}));
    int64_t version = 0;
    if (rows.empty()) {
      DPAR_RETURN_IF_ERROR(transaction.Execute("INSERT INTO schema_version (version) VALUES (0)", {}).status());
    } else {
      RowReader reader(rows[0]);
      version = reader.Int();
      DPAR_RETURN_IF_ERROR(reader.status());
    }
    if (version < 0 || version > static_cast<int64_t>(kSteps.size())) {
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::STORE_CORRUPT,
                       absl::StrCat("the store has schema version ", version, " and this program knows up to ",
                                    kSteps.size(), "; run a newer dpard"));
    }
    for (int64_t step = version; step < target; ++step) {
      const Step& texts = kSteps.at(static_cast<size_t>(step));
      DPAR_RETURN_IF_ERROR(RunStatements(transaction, texts.both));
      DPAR_RETURN_IF_ERROR(RunStatements(transaction, postgres ? texts.postgres : ""));
    }
    return transaction.Execute("UPDATE schema_version SET version = $1", {std::max(version, target)}).status();
  });
}

}  // namespace dpar
