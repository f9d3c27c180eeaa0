#include "server/queue/queue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"

namespace dpar {
namespace {

constexpr absl::string_view kColumns =
    "name, COALESCE(budget_id, ''), spec, plan, state, failure, create_time, start_time, end_time, attempts, "
    "cancel_requested, COALESCE(evaluation, '')";

constexpr int64_t kQueued = v1::Job::QUEUED;
constexpr int64_t kRunning = v1::Job::RUNNING;

std::string TenantOf(const std::string& name) { return name.substr(0, name.find('/', name.find('/') + 1)); }

absl::StatusOr<StoredJob> ReadJob(const Row& row) {
  StoredJob stored;
  v1::Job& job = stored.job;
  RowReader reader(row);
  job.set_name(reader.Text());
  stored.budget_id = reader.Text();
  const std::string spec = reader.Text();
  const std::string plan = reader.Text();
  job.set_state(static_cast<v1::Job::State>(reader.Int()));
  job.set_failure(reader.Text());
  *job.mutable_create_time() = ToTimestamp(reader.Int());
  if (const std::optional<int64_t> time = reader.OptionalInt()) {
    *job.mutable_start_time() = ToTimestamp(*time);
  }
  if (const std::optional<int64_t> time = reader.OptionalInt()) {
    *job.mutable_end_time() = ToTimestamp(*time);
  }
  job.set_attempts(static_cast<int32_t>(reader.Int()));
  stored.cancel_requested = reader.Int() != 0;
  const std::string evaluation = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(TextToMessage(spec, *job.mutable_spec()));
  DPAR_RETURN_IF_ERROR(TextToMessage(plan, *job.mutable_plan()));
  if (!evaluation.empty()) {
    DPAR_RETURN_IF_ERROR(TextToMessage(evaluation, *job.mutable_evaluation()));
  }
  if (!v1::Job::State_IsValid(job.state()) || job.state() == v1::Job::STATE_UNSPECIFIED) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a stored job has an unknown state",
                     {{"resource", job.name()}});
  }
  return stored;
}

absl::StatusOr<std::vector<StoredJob>> LoadJobs(Transaction& transaction, absl::string_view where_and_order,
                                                const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT ", kColumns, " FROM jobs WHERE ", where_and_order), parameters));
  std::vector<StoredJob> jobs;
  jobs.reserve(rows.size());
  for (const Row& row : rows) {
    DPAR_ASSIGN_OR_RETURN(StoredJob job, ReadJob(row));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<int64_t> CountJobs(Transaction& transaction, absl::string_view column, const std::string& value) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT COUNT(*) FROM jobs WHERE ", column, " = $1 AND state IN ($2, $3)"),
                        {value, kQueued, kRunning}));
  RowReader reader(rows.at(0));
  const int64_t count = reader.Int();
  DPAR_RETURN_IF_ERROR(reader.status());
  return count;
}

absl::Status Ended(const std::string& name) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED,
                   absl::StrCat(name, " has ended or is not running in this attempt"), {{"resource", name}});
}

}  // namespace

absl::Status Enqueue(Transaction& transaction, const StoredJob& stored, int64_t max_queued) {
  const v1::Job& job = stored.job;
  const std::string tenant = TenantOf(job.name());
  DPAR_ASSIGN_OR_RETURN(const int64_t live, CountJobs(transaction, "tenant", tenant));
  if (live >= max_queued) {
    return MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
                     absl::StrCat("a tenant may have at most ", max_queued, " jobs queued or running; wait for one"),
                     {{"limit", "max_queued_jobs"}, {"maximum", absl::StrCat(max_queued)}});
  }
  DPAR_ASSIGN_OR_RETURN(const std::string spec, MessageToText(job.spec()));
  DPAR_ASSIGN_OR_RETURN(const std::string plan, MessageToText(job.plan()));
  return transaction
      .Execute(
          "INSERT INTO jobs (name, tenant, dataset, budget_id, spec, plan, state, failure, create_time, attempts, "
          "cancel_requested) VALUES ($1, $2, $3, $4, $5, $6, $7, '', $8, 0, 0)",
          {job.name(), tenant, job.spec().dataset(), TextOrNull(stored.budget_id), spec, plan, kQueued,
           ToMicroseconds(job.create_time())})
      .status();
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
    if (static_cast<int64_t>(page.jobs.size()) == page_size) {
      const v1::Job& last = page.jobs.back();
      page.next_page_token = MakePageToken({ToMicroseconds(last.create_time()), last.name()});
      break;
    }
    page.jobs.push_back(std::move(stored.job));
  }
  return page;
}

absl::StatusOr<int64_t> CountLiveJobs(Transaction& transaction, const std::string& dataset) {
  return CountJobs(transaction, "dataset", dataset);
}

absl::StatusOr<std::optional<StoredJob>> Lease(Transaction& transaction, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs,
                        LoadJobs(transaction, "state = $1 ORDER BY create_time, name LIMIT 1", {kQueued}));
  if (jobs.empty()) {
    return std::nullopt;
  }
  StoredJob& stored = jobs[0];
  stored.job.set_state(v1::Job::RUNNING);
  stored.job.set_attempts(stored.job.attempts() + 1);
  *stored.job.mutable_start_time() = ToTimestamp(absl::ToUnixMicros(now));
  DPAR_RETURN_IF_ERROR(transaction
                           .Execute("UPDATE jobs SET state = $2, attempts = $3, start_time = $4 WHERE name = $1",
                                    {stored.job.name(), kRunning, int64_t{stored.job.attempts()},
                                     ToMicroseconds(stored.job.start_time())})
                           .status());
  return std::move(stored);
}

absl::Status Requeue(Transaction& transaction, const std::string& name, bool count_attempt) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t changed,
      transaction.Execute("UPDATE jobs SET state = $2, attempts = attempts - $4 WHERE name = $1 AND state = $3",
                          {name, kQueued, kRunning, int64_t{count_attempt ? 0 : 1}}));
  return changed == 1 ? absl::OkStatus() : Ended(name);
}

absl::StatusOr<std::vector<StoredJob>> RunningJobs(Transaction& transaction) {
  return LoadJobs(transaction, "state = $1 ORDER BY create_time, name", {kRunning});
}

absl::Status Succeed(Transaction& transaction, const std::string& name, int attempt, const JobOutput& output,
                     absl::Time now) {
  std::string evaluation;
  if (output.evaluation.has_value()) {
    DPAR_ASSIGN_OR_RETURN(evaluation, MessageToText(*output.evaluation));
  }
  DPAR_ASSIGN_OR_RETURN(const int64_t changed,
                        transaction.Execute("UPDATE jobs SET state = $2, end_time = $3, evaluation = $6 "
                                            "WHERE name = $1 AND state = $4 AND attempts = $5",
                                            {name, int64_t{v1::Job::SUCCEEDED}, absl::ToUnixMicros(now), kRunning,
                                             int64_t{attempt}, TextOrNull(evaluation)}));
  if (changed != 1) {
    return Ended(name);
  }
  return transaction
      .Execute(
          "INSERT INTO outputs (job, weights_sha256, weights_bytes, script_sha256, script_bytes, envelope) "
          "VALUES ($1, $2, $3, $4, $5, $6)",
          {name, output.weights_sha256, output.weights_bytes, output.script_sha256, output.script_bytes,
           output.envelope})
      .status();
}

absl::Status End(Transaction& transaction, const std::string& name, v1::Job::State state, const std::string& failure,
                 absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t changed,
      transaction.Execute(
          "UPDATE jobs SET state = $2, failure = $3, end_time = $4 WHERE name = $1 AND state IN ($5, $6)",
          {name, int64_t{state}, failure, absl::ToUnixMicros(now), kQueued, kRunning}));
  return changed == 1 ? absl::OkStatus() : Ended(name);
}

absl::Status RequestCancel(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t changed,
      transaction.Execute("UPDATE jobs SET cancel_requested = 1 WHERE name = $1 AND state = $2", {name, kRunning}));
  return changed == 1 ? absl::OkStatus() : Ended(name);
}

absl::StatusOr<JobOutput> GetOutput(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(transaction, name));
  if (stored.job.state() != v1::Job::SUCCEEDED) {
    const std::string state = v1::Job::State_Name(stored.job.state());
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_NOT_SUCCEEDED,
                     absl::StrCat(name, " is ", state, "; only a job that succeeded has a model and a certificate"),
                     {{"state", state}});
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT weights_sha256, weights_bytes, script_sha256, script_bytes, envelope "
                                          "FROM outputs WHERE job = $1",
                                          {name}));
  if (rows.size() != 1) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a job that succeeded has no stored output",
                     {{"resource", name}});
  }
  RowReader reader(rows[0]);
  JobOutput output;
  output.weights_sha256 = reader.Text();
  output.weights_bytes = reader.Int();
  output.script_sha256 = reader.Text();
  output.script_bytes = reader.Int();
  output.envelope = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  if (stored.job.has_evaluation()) {
    output.evaluation = stored.job.evaluation();
  }
  return output;
}

}  // namespace dpar
