// The schema, as a list of steps: step i brings version i to i + 1. A released step is never changed.
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/database.h"

namespace dpar {
namespace {

// Times are microseconds since 1970 in UTC, keys and salts hex, events and declarations JSON, job messages packed.
// tokens: scopes are v1::Scope names with commas; none is all. The index allows one unrevoked token for each URI.
// populations: frozen_reason is empty unless frozen (server/witness), closed_reason unless no job is ever admitted
// again; merged_into names the population that holds its people since. max_degree is the smallest degree promise of its
// datasets, node_total the sum of N over its versions, of deleted datasets too.
// ledger_entries: the index holds what counts against kFreeVoids: VOID entries, and MERGE entries that inherit some.
// datasets: no column follows from a private graph's content but the digest. out_of_service_reason is empty while jobs
// may run on it.
// jobs: lease counts leases and is the running attempt's fencing token. openings counts those in which the data may
// have been opened. The name follows from the request's id; request_fingerprint is that of the request. Each index that
// a reservation does not touch saves a page write: one holds started jobs, one ended jobs; a dataset's live jobs are
// found among its tenant's. (With an index of one state, SQLite would plan queries by state anew at every run.)
// jobs, ledger_entries, outputs and output_files have no references: PostgreSQL would look up and lock a row for each,
// which jobs of one tenant share. Referenced rows are never removed (datasets are marked), and reservations and
// releases lock them. witness_ids: the witness directories that served the store, oldest first
// (server/witness/pairing.h).
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
  revoke_time BIGINT,
  scopes TEXT NOT NULL DEFAULT '',
  last_use_time BIGINT,
  certificate_uri TEXT);
CREATE INDEX tokens_by_parent ON tokens (parent, create_time, id);
CREATE UNIQUE INDEX tokens_by_certificate ON tokens (certificate_uri) WHERE revoke_time IS NULL;
CREATE TABLE populations (
  name TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  create_time BIGINT NOT NULL,
  cap_epsilon DOUBLE PRECISION NOT NULL,
  cap_delta DOUBLE PRECISION NOT NULL,
  renyi_order BIGINT NOT NULL,
  cap_units BIGINT NOT NULL CHECK (cap_units >= 0),
  posted_units BIGINT NOT NULL CHECK (posted_units >= 0),
  reserved_units BIGINT NOT NULL CHECK (reserved_units >= 0),
  live_events BIGINT NOT NULL CHECK (live_events >= 0),
  head_sequence BIGINT NOT NULL,
  head_hash TEXT NOT NULL,
  node_total BIGINT NOT NULL DEFAULT 0,
  max_degree BIGINT,
  closed_reason TEXT NOT NULL DEFAULT '',
  merged_into TEXT NOT NULL DEFAULT '',
  frozen_reason TEXT NOT NULL DEFAULT '');
CREATE INDEX populations_by_tenant ON populations (tenant, create_time, name);
CREATE INDEX populations_frozen ON populations (name) WHERE frozen_reason <> '';
CREATE INDEX populations_merged ON populations (merged_into) WHERE merged_into <> '';
CREATE TABLE ledger_entries (
  population TEXT NOT NULL,
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
  PRIMARY KEY (population, sequence),
  UNIQUE (population, job, kind));
CREATE INDEX ledger_entries_opened_voids ON ledger_entries (population) WHERE kind IN (4, 7) AND attempt > 0;
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
  population TEXT REFERENCES populations (name),
  edge_bound BIGINT NOT NULL DEFAULT 0,
  entry_bound BIGINT NOT NULL DEFAULT 0,
  max_degree BIGINT,
  table_schema TEXT NOT NULL DEFAULT '',
  out_of_service_reason TEXT NOT NULL DEFAULT '');
CREATE INDEX datasets_by_tenant ON datasets (tenant, create_time, name);
CREATE INDEX datasets_by_population ON datasets (population, create_time, name);
CREATE TABLE contents (
  tenant TEXT NOT NULL REFERENCES tenants (name),
  content_digest TEXT NOT NULL,
  population TEXT NOT NULL REFERENCES populations (name),
  PRIMARY KEY (tenant, content_digest));
CREATE TABLE public_contents (
  tenant TEXT NOT NULL REFERENCES tenants (name),
  content_digest TEXT NOT NULL,
  PRIMARY KEY (tenant, content_digest));
CREATE TABLE uploads (
  name TEXT PRIMARY KEY,
  tenant TEXT NOT NULL REFERENCES tenants (name),
  declared TEXT NOT NULL,
  state BIGINT NOT NULL,
  create_time BIGINT NOT NULL);
CREATE INDEX uploads_by_tenant ON uploads (tenant, state);
CREATE INDEX uploads_by_state ON uploads (state, name);
CREATE TABLE answers (
  scope TEXT NOT NULL,
  request_id TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  answer TEXT NOT NULL,
  create_time BIGINT NOT NULL,
  PRIMARY KEY (scope, request_id));
CREATE INDEX answers_by_time ON answers (create_time);
CREATE TABLE jobs (
  name TEXT PRIMARY KEY,
  tenant TEXT NOT NULL,
  dataset TEXT NOT NULL,
  population TEXT,
  spec TEXT NOT NULL,
  plan TEXT NOT NULL,
  state BIGINT NOT NULL,
  failure TEXT NOT NULL,
  create_time BIGINT NOT NULL,
  start_time BIGINT,
  end_time BIGINT,
  attempts BIGINT NOT NULL,
  openings BIGINT NOT NULL DEFAULT 0,
  cancel_requested BIGINT NOT NULL,
  evaluation TEXT,
  priority BIGINT NOT NULL DEFAULT 0,
  memory_bytes BIGINT NOT NULL DEFAULT 0,
  not_before BIGINT NOT NULL DEFAULT 0,
  lease BIGINT NOT NULL DEFAULT 0,
  lease_owner TEXT NOT NULL DEFAULT '',
  lease_expire_time BIGINT NOT NULL DEFAULT 0,
  progress TEXT,
  request_fingerprint TEXT NOT NULL DEFAULT '');
CREATE INDEX jobs_by_tenant ON jobs (tenant, create_time, name);
CREATE INDEX jobs_to_lease ON jobs (state, tenant, priority DESC, create_time, name);
CREATE INDEX jobs_by_start ON jobs (tenant, start_time) WHERE start_time IS NOT NULL;
CREATE INDEX jobs_by_dataset ON jobs (dataset) WHERE end_time IS NOT NULL;
CREATE TABLE outputs (
  job TEXT PRIMARY KEY,
  envelope TEXT NOT NULL,
  lease BIGINT NOT NULL DEFAULT 0);
CREATE TABLE output_files (
  job TEXT NOT NULL,
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  PRIMARY KEY (job, name));
CREATE TABLE witness_ids (
  number BIGINT PRIMARY KEY,
  id TEXT NOT NULL,
  time BIGINT NOT NULL,
  reason TEXT NOT NULL)
)sql";
// Certificates are 5 to 9 kB of base64; compressing them took longer than the rest of ending a job.
constexpr const char* kVersion1OfPostgres = "ALTER TABLE outputs ALTER COLUMN envelope SET STORAGE EXTERNAL";

constexpr std::array<SchemaStep, kSchemaVersion> kSteps = {{{kVersion1, kVersion1OfPostgres}}};

// For two servers that start at once on an empty store.
constexpr absl::Duration kMigrationPatience = absl::Minutes(1);

absl::Status RunStatements(Transaction& transaction, absl::string_view text) {
  for (const absl::string_view statement : absl::StrSplit(text, ';', absl::SkipWhitespace())) {
    DPAR_RETURN_IF_ERROR(transaction.Execute(statement, {}).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> StoredVersion(Transaction& transaction) {
  return transaction.QueryInt("SELECT COALESCE(MAX(version), 0) FROM schema_version", {});
}

}  // namespace

absl::Status Migrate(Database& database) { return MigrateBy(database, kSteps); }

absl::Status MigrateBy(Database& database, absl::Span<const SchemaStep> steps) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<NameHold> hold, database.Hold("schema", kMigrationPatience));
  const bool postgres = database.shared();
  return database.Write([steps, postgres](Transaction& transaction) -> absl::Status {
    DPAR_RETURN_IF_ERROR(
        transaction.Execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)", {}).status());
    DPAR_ASSIGN_OR_RETURN(const int64_t version, StoredVersion(transaction));
    if (version < 0 || version > static_cast<int64_t>(steps.size())) {
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::STORE_CORRUPT,
                       absl::StrCat("the store has schema version ", version, " and this program knows up to ",
                                    steps.size(), "; run a newer dpard"));
    }
    for (const SchemaStep& step : steps.subspan(static_cast<size_t>(version))) {
      DPAR_RETURN_IF_ERROR(RunStatements(transaction, step.both));
      DPAR_RETURN_IF_ERROR(RunStatements(transaction, postgres ? step.postgres : ""));
    }
    DPAR_RETURN_IF_ERROR(transaction.Execute("DELETE FROM schema_version", {}).status());
    return transaction.Execute("INSERT INTO schema_version (version) VALUES ($1)", {static_cast<int64_t>(steps.size())})
        .status();
  });
}

absl::Status CheckSchema(Transaction& transaction) {
  DPAR_ASSIGN_OR_RETURN(const int64_t version, StoredVersion(transaction));
  if (version == kSchemaVersion) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kFailedPrecondition, v1::STORE_CORRUPT,
      absl::StrCat("the store has schema version ", version, " and this program works with ", kSchemaVersion, "; ",
                   version < kSchemaVersion ? "`dpard init` brings it there" : "run a newer dpard"));
}

}  // namespace dpar
