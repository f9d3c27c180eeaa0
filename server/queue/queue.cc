#include "server/queue/queue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/resource_name.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"

namespace dpar {
namespace {

// The messages (spec, plan, evaluation, progress) take longer to read than all other columns.
constexpr absl::string_view kStateColumns =
    "name, COALESCE(population, ''), state, failure, create_time, start_time, end_time, attempts, cancel_requested, "
    "priority, memory_bytes, lease, lease_expire_time, request_fingerprint, openings, evaluation IS NOT NULL";
constexpr absl::string_view kMessageColumns = "spec, plan, COALESCE(evaluation, ''), COALESCE(progress, '')";

constexpr int64_t kQueued = v1::Job::QUEUED;
constexpr int64_t kRunning = v1::Job::RUNNING;

absl::Status CorruptJob(absl::string_view what, const std::string& name) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, what, {{"resource", name}});
}

absl::Status CheckJob(const StoredJob& stored, bool has_evaluation) {
  const v1::Job& job = stored.job;
  const bool ended =
      job.state() == v1::Job::SUCCEEDED || job.state() == v1::Job::FAILED || job.state() == v1::Job::CANCELLED;
  const bool possible = v1::Job::State_IsValid(job.state()) && job.state() != v1::Job::STATE_UNSPECIFIED &&
                        job.attempts() >= 0 && stored.openings >= 0 && stored.lease >= stored.openings &&
                        job.memory_bytes() >= 0 && ended == job.has_end_time() &&
                        (job.state() != v1::Job::RUNNING || job.has_start_time()) &&
                        (job.failure().empty() ? job.state() != v1::Job::FAILED
                                               : job.state() == v1::Job::FAILED || job.state() == v1::Job::CANCELLED) &&
                        (job.state() == v1::Job::SUCCEEDED || !has_evaluation);
  return possible ? absl::OkStatus() : CorruptJob("a stored job is none that could have been written", job.name());
}

absl::StatusOr<StoredJob> ReadState(RowReader& reader) {
  StoredJob stored;
  v1::Job& job = stored.job;
  job.set_name(reader.Text());
  stored.population = reader.Text();
  job.set_state(static_cast<v1::Job::State>(reader.Int32()));
  job.set_failure(reader.Text());
  *job.mutable_create_time() = ToTimestamp(reader.Int());
  if (const std::optional<int64_t> time = reader.OptionalInt()) {
    *job.mutable_start_time() = ToTimestamp(*time);
  }
  if (const std::optional<int64_t> time = reader.OptionalInt()) {
    *job.mutable_end_time() = ToTimestamp(*time);
  }
  job.set_attempts(reader.Int32());
  stored.cancel_requested = reader.Int() != 0;
  job.set_priority(reader.Int32());
  job.set_memory_bytes(reader.Int());
  stored.lease = reader.Int();
  stored.lease_expire_time = absl::FromUnixMicros(reader.Int());
  stored.fingerprint = reader.Text();
  stored.openings = reader.Int32();
  const bool has_evaluation = reader.Int() != 0;
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(CheckJob(stored, has_evaluation));
  return stored;
}

absl::StatusOr<StoredJob> ReadJob(const Row& row) {
  RowReader reader(row);
  DPAR_ASSIGN_OR_RETURN(StoredJob stored, ReadState(reader));
  v1::Job& job = stored.job;
  const std::string spec = reader.Text();
  const std::string plan = reader.Text();
  const std::string evaluation = reader.Text();
  const std::string progress = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(UnpackMessage(spec, *job.mutable_spec()));
  DPAR_RETURN_IF_ERROR(UnpackMessage(plan, *job.mutable_plan()));
  if (!evaluation.empty()) {
    DPAR_RETURN_IF_ERROR(UnpackMessage(evaluation, *job.mutable_evaluation()));
  }
  if (!progress.empty() && job.state() == v1::Job::RUNNING) {
    DPAR_RETURN_IF_ERROR(UnpackMessage(progress, *job.mutable_progress()));
  }
  return stored;
}

absl::StatusOr<std::vector<StoredJob>> LoadJobs(Transaction& transaction, absl::string_view where_and_order,
                                                const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query(absl::StrCat("SELECT ", kStateColumns, ", ", kMessageColumns,
                                                       " FROM jobs WHERE ", where_and_order),
                                          parameters));
  std::vector<StoredJob> jobs;
  jobs.reserve(rows.size());
  for (const Row& row : rows) {
    DPAR_ASSIGN_OR_RETURN(StoredJob job, ReadJob(row));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::Status Ended(const std::string& name) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED,
                   absl::StrCat(name, " has ended or is not running under this lease"), {{"resource", name}});
}

// Tenants with queued jobs in the order of their turns, and their running jobs. Skips through the index (state, tenant,
// ...) from tenant to tenant, so it reads only each tenant's first queued job. Starts far ahead of now do not count: a
// clock was wrong.
struct Waiting {
  std::string tenant;
  int64_t running = 0;
};
absl::StatusOr<std::vector<Waiting>> WaitingTenants(Transaction& transaction, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(
          "WITH RECURSIVE waiting(tenant) AS ("
          "SELECT MIN(tenant) FROM jobs WHERE state = $1 "
          "UNION ALL "
          "SELECT (SELECT MIN(j.tenant) FROM jobs j WHERE j.state = $1 AND j.tenant > waiting.tenant) FROM waiting "
          "WHERE waiting.tenant IS NOT NULL) "
          "SELECT w.tenant, COALESCE(r.jobs, 0) AS running, "
          "COALESCE((SELECT MAX(s.start_time) FROM jobs s WHERE s.tenant = w.tenant AND s.start_time <= $3), 0) "
          "AS last_start "
          "FROM waiting w LEFT JOIN (SELECT tenant, COUNT(*) AS jobs FROM jobs WHERE state = $2 GROUP BY tenant) r "
          "ON r.tenant = w.tenant WHERE w.tenant IS NOT NULL ORDER BY running, last_start, w.tenant",
          {kQueued, kRunning, absl::ToUnixMicros(now + kLongestPause)}));
  std::vector<Waiting> waiting;
  for (const Row& row : rows) {
    RowReader reader(row);
    Waiting& one = waiting.emplace_back();
    one.tenant = reader.Text();
    one.running = reader.Int();
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return waiting;
}

// The tenant's next job that fits this server and is not taken. Skips frozen budgets, whose jobs are about to end.
absl::StatusOr<std::optional<StoredJob>> NextOf(Transaction& transaction, const LeaseRequest& request,
                                                const std::string& tenant) {
  DPAR_ASSIGN_OR_RETURN(
      std::vector<StoredJob> jobs,
      LoadJobs(transaction,
               absl::StrCat("state = $1 AND tenant = $2 AND not_before <= $3 AND memory_bytes <= $4 AND NOT EXISTS "
                            "(SELECT 1 FROM populations WHERE populations.name = jobs.population AND "
                            "populations.frozen_reason <> '') "
                            "ORDER BY priority DESC, create_time, name LIMIT 1",
                            transaction.skip_locked()),
               {kQueued, tenant, absl::ToUnixMicros(request.now), request.total_bytes}));
  return jobs.empty() ? std::nullopt : std::optional(std::move(jobs[0]));
}

absl::Status StartLease(Transaction& transaction, const LeaseRequest& request, StoredJob& stored) {
  v1::Job& job = stored.job;
  job.set_state(v1::Job::RUNNING);
  job.set_attempts(job.attempts() + 1);
  *job.mutable_start_time() = ToTimestamp(absl::ToUnixMicros(request.now));
  stored.lease += 1;
  stored.openings += 1;
  stored.lease_expire_time = request.now + request.duration;
  DPAR_RETURN_IF_ERROR(CheckJob(stored, job.has_evaluation()));
  return transaction.ExecuteOne(
      "UPDATE jobs SET state = $2, attempts = $3, start_time = $4, lease = $5, lease_owner = $6, "
      "lease_expire_time = $7, openings = $8, progress = NULL WHERE name = $1",
      {job.name(), kRunning, int64_t{job.attempts()}, ToMicroseconds(job.start_time()), stored.lease, request.owner,
       absl::ToUnixMicros(request.now + request.duration), int64_t{stored.openings}},
      CorruptJob("a job was gone while it was leased", job.name()));
}

}  // namespace

absl::Status Enqueue(Transaction& transaction, const StoredJob& stored) {
  const v1::Job& job = stored.job;
  return transaction.ExecuteOne(
      "INSERT INTO jobs (name, tenant, dataset, population, spec, plan, state, failure, create_time, attempts, "
      "cancel_requested, priority, memory_bytes, request_fingerprint) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, '', $8, 0, 0, $9, $10, $11)",
      {job.name(), TenantOf(job.name()), job.spec().dataset(), TextOrNull(stored.population), PackMessage(job.spec()),
       PackMessage(job.plan()), kQueued, ToMicroseconds(job.create_time()), int64_t{job.priority()}, job.memory_bytes(),
       stored.fingerprint},
      CorruptJob("a job was not written", job.name()));
}

absl::Status CheckQueueLimit(Transaction& transaction, const std::string& dataset, int64_t max_queued) {
  // Counted by state: with both states in a list, PostgreSQL reads all jobs that the tenant ever had.
  DPAR_ASSIGN_OR_RETURN(const int64_t live,
                        transaction.QueryInt("SELECT (SELECT COUNT(*) FROM jobs WHERE state = $1 AND tenant = $3) + "
                                             "(SELECT COUNT(*) FROM jobs WHERE state = $2 AND tenant = $3)",
                                             {kQueued, kRunning, TenantOf(dataset)}));
  if (live < max_queued) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
                   absl::StrCat("a tenant may have at most ", max_queued, " jobs queued or running; wait for one"),
                   {{"limit", "max_queued_jobs"}, {"maximum", absl::StrCat(max_queued)}});
}

absl::StatusOr<StoredJob> GetJob(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, LoadJobs(transaction, "name = $1", {name}));
  if (jobs.empty()) {
    return ResourceNotFound(name);
  }
  return std::move(jobs[0]);
}

absl::StatusOr<JobPage> ListJobs(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                 const std::string& page_token) {
  std::vector<Value> parameters = {tenant, page_size + 1};
  absl::string_view condition = "tenant = $1 ORDER BY create_time DESC, name DESC LIMIT $2";
  if (!page_token.empty()) {
    DPAR_ASSIGN_OR_RETURN(const PagePosition before, ParsePageToken(page_token));
    parameters.insert(parameters.end(), {before.time, before.name});
    condition = "tenant = $1 AND (create_time, name) < ($3, $4) ORDER BY create_time DESC, name DESC LIMIT $2";
  }
  DPAR_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, LoadJobs(transaction, condition, parameters));
  JobPage page;
  for (StoredJob& stored : jobs) {
    page.jobs.push_back(std::move(stored.job));
  }
  page.next_page_token = CutPage(page.jobs, page_size);
  return page;
}

absl::StatusOr<int64_t> CountLiveJobs(Transaction& transaction, const std::string& dataset) {
  return transaction.QueryInt(
      "SELECT (SELECT COUNT(*) FROM jobs WHERE state = $2 AND tenant = $1 AND dataset = $4) + "
      "(SELECT COUNT(*) FROM jobs WHERE state = $3 AND tenant = $1 AND dataset = $4)",
      {TenantOf(dataset), kQueued, kRunning, dataset});
}

absl::StatusOr<QueueState> GetQueueState(Transaction& transaction, const std::string& tenant) {
  QueueState queue;
  for (const int64_t state : {kQueued, kRunning}) {
    DPAR_ASSIGN_OR_RETURN(
        const std::vector<Row> rows,
        transaction.Query("SELECT COUNT(*), MIN(create_time) FROM jobs WHERE state = $1 AND ($2 = '' OR tenant = $2)",
                          {state, tenant}));
    RowReader reader(rows.at(0));
    (state == kQueued ? queue.queued : queue.running) = reader.Int();
    const std::optional<int64_t> oldest = reader.OptionalInt();
    DPAR_RETURN_IF_ERROR(reader.status());
    if (state == kQueued && oldest.has_value()) {
      queue.oldest_queued = absl::FromUnixMicros(*oldest);
    }
  }
  return queue;
}

absl::StatusOr<StoredJob> LockJob(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT ", kStateColumns, " FROM jobs WHERE name = $1", transaction.for_update()),
                        {name}));
  if (rows.empty()) {
    return ResourceNotFound(name);
  }
  RowReader reader(rows[0]);
  return ReadState(reader);
}

absl::StatusOr<std::optional<StoredJob>> Lease(Transaction& transaction, const LeaseRequest& request) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Waiting> tenants, WaitingTenants(transaction, request.now));
  for (const Waiting& waiting : tenants) {
    if (waiting.running >= request.max_running_jobs) {
      break;
    }
    DPAR_ASSIGN_OR_RETURN(std::optional<StoredJob> job, NextOf(transaction, request, waiting.tenant));
    if (!job.has_value()) {
      continue;
    }
    if (job->job.memory_bytes() > request.free_bytes) {
      break;
    }
    DPAR_RETURN_IF_ERROR(StartLease(transaction, request, *job));
    return job;
  }
  return std::nullopt;
}

absl::Status CheckLease(const StoredJob& job, int64_t lease) {
  const bool held = job.job.state() == v1::Job::RUNNING && job.lease == lease;
  return held ? absl::OkStatus() : Ended(job.job.name());
}

absl::StatusOr<StoredJob> HoldLease(Transaction& transaction, const std::string& name, int64_t lease) {
  DPAR_ASSIGN_OR_RETURN(StoredJob stored, LockJob(transaction, name));
  DPAR_RETURN_IF_ERROR(CheckLease(stored, lease));
  return stored;
}

absl::StatusOr<StoredJob> Renew(Transaction& transaction, const std::string& name, int64_t lease, absl::Time now,
                                absl::Duration duration, const std::optional<v1::JobProgress>& progress) {
  DPAR_ASSIGN_OR_RETURN(StoredJob stored, HoldLease(transaction, name, lease));
  std::string text;
  if (progress.has_value()) {
    text = PackMessage(*progress);
  }
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne("UPDATE jobs SET lease_expire_time = $2, progress = $3 WHERE name = $1",
                                              {name, absl::ToUnixMicros(now + duration), TextOrNull(text)},
                                              Ended(name)));
  return stored;
}

absl::StatusOr<std::vector<StoredJob>> RunningJobs(Transaction& transaction) {
  return LoadJobs(transaction, "state = $1 ORDER BY create_time, name", {kRunning});
}

absl::StatusOr<std::vector<std::string>> ForgetFarPauses(Transaction& transaction, absl::Time now) {
  const int64_t latest = absl::ToUnixMicros(now + kLongestPause);
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT name FROM jobs WHERE state = $1 AND not_before > $2 ORDER BY name",
                                     transaction.skip_locked()),
                        {kQueued, latest}));
  std::vector<std::string> names;
  for (const Row& row : rows) {
    RowReader reader(row);
    names.push_back(reader.Text());
    DPAR_RETURN_IF_ERROR(reader.status());
    DPAR_RETURN_IF_ERROR(
        transaction.Execute("UPDATE jobs SET not_before = 0 WHERE name = $1", {names.back()}).status());
  }
  return names;
}

absl::Status Requeue(Transaction& transaction, const std::string& name, bool count_attempt, bool opened,
                     absl::Time not_before) {
  return transaction.ExecuteOne(
      "UPDATE jobs SET state = $2, attempts = attempts - $4, openings = openings - $6, not_before = $5, "
      "progress = NULL WHERE name = $1 AND state = $3",
      {name, kQueued, kRunning, int64_t{count_attempt ? 0 : 1}, absl::ToUnixMicros(not_before),
       int64_t{opened ? 0 : 1}},
      Ended(name));
}

namespace {

// In one statement, because the budget is locked meanwhile.
absl::Status InsertFiles(Transaction& transaction, const std::string& job,
                         const std::map<std::string, OutputFile>& files) {
  if (files.empty()) {
    return absl::OkStatus();
  }
  std::vector<Value> values = {job};
  std::vector<std::string> rows;
  for (const auto& [name, file] : files) {
    const size_t last = values.size();
    rows.push_back(absl::StrCat("($1, $", last + 1, ", $", last + 2, ", $", last + 3, ")"));
    values.insert(values.end(), {name, file.sha256, file.bytes});
  }
  return transaction
      .Execute(absl::StrCat("INSERT INTO output_files (job, name, sha256, bytes) VALUES ", absl::StrJoin(rows, ", ")),
               values)
      .status();
}

}  // namespace

absl::Status Succeed(Transaction& transaction, const std::string& name, const JobOutput& output, absl::Time now) {
  std::string evaluation;
  if (output.evaluation.has_value()) {
    evaluation = PackMessage(*output.evaluation);
  }
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne(
      "UPDATE jobs SET state = $2, end_time = $3, evaluation = $6, progress = NULL "
      "WHERE name = $1 AND state = $4 AND lease = $5",
      {name, int64_t{v1::Job::SUCCEEDED}, absl::ToUnixMicros(now), kRunning, output.lease, TextOrNull(evaluation)},
      Ended(name)));
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne("INSERT INTO outputs (job, envelope, lease) VALUES ($1, $2, $3)",
                                              {name, output.envelope, output.lease},
                                              CorruptJob("a job's output was not written", name)));
  return InsertFiles(transaction, name, output.files);
}

absl::Status End(Transaction& transaction, const std::string& name, v1::Job::State state, const std::string& failure,
                 absl::Time now) {
  return transaction.ExecuteOne(
      "UPDATE jobs SET state = $2, failure = $3, end_time = $4, progress = NULL "
      "WHERE name = $1 AND state IN ($5, $6)",
      {name, int64_t{state}, failure, absl::ToUnixMicros(now), kQueued, kRunning}, Ended(name));
}

absl::Status RequestCancel(Transaction& transaction, const std::string& name) {
  return transaction.ExecuteOne("UPDATE jobs SET cancel_requested = 1 WHERE name = $1 AND state = $2", {name, kRunning},
                                Ended(name));
}

}  // namespace dpar
