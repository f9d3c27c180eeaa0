#include "server/queue/queue.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/message_text.h"
#include "server/store/paging.h"

namespace dpar {
namespace {

// What a job is, and the messages about it, which cost more to read than all the rest.
constexpr absl::string_view kStateColumns =
    "name, COALESCE(budget_id, ''), state, failure, create_time, start_time, end_time, attempts, cancel_requested, "
    "priority, memory_bytes, lease, lease_expire_time, request_fingerprint, evaluation IS NOT NULL";
constexpr absl::string_view kMessageColumns =
    "spec, plan, left_units, COALESCE(evaluation, ''), COALESCE(progress, '')";

constexpr int64_t kQueued = v1::Job::QUEUED;
constexpr int64_t kRunning = v1::Job::RUNNING;

// A tenant's live jobs, counted state by state: with both states in a list, PostgreSQL goes through all jobs that the
// tenant ever had.
constexpr absl::string_view kCountLive =
    "SELECT (SELECT COUNT(*) FROM jobs WHERE state = $1 AND tenant = $3) + "
    "(SELECT COUNT(*) FROM jobs WHERE state = $2 AND tenant = $3)";

absl::Status CorruptJob(absl::string_view what, const std::string& name) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, what, {{"resource", name}});
}

// DATA_LOSS when no function here writes such a job.
absl::Status CheckJob(const StoredJob& stored, bool has_evaluation) {
  const v1::Job& job = stored.job;
  const bool ended =
      job.state() == v1::Job::SUCCEEDED || job.state() == v1::Job::FAILED || job.state() == v1::Job::CANCELLED;
  const bool possible = v1::Job::State_IsValid(job.state()) && job.state() != v1::Job::STATE_UNSPECIFIED &&
                        job.attempts() >= 0 && stored.lease >= 0 && job.memory_bytes() >= 0 &&
                        ended == job.has_end_time() && (job.state() != v1::Job::RUNNING || job.has_start_time()) &&
                        (job.state() == v1::Job::FAILED) == !job.failure().empty() &&
                        (job.state() == v1::Job::SUCCEEDED || !has_evaluation);
  return possible ? absl::OkStatus() : CorruptJob("a stored job is none that could have been written", job.name());
}

std::string TenantOf(const std::string& name) { return name.substr(0, name.find('/', name.find('/') + 1)); }

// The first of kStateColumns.
absl::StatusOr<StoredJob> ReadState(RowReader& reader) {
  StoredJob stored;
  v1::Job& job = stored.job;
  job.set_name(reader.Text());
  stored.budget_id = reader.Text();
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
  const std::optional<int64_t> left_units = reader.OptionalInt();
  const std::string evaluation = reader.Text();
  const std::string progress = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(UnpackMessage(spec, *job.mutable_spec()));
  DPAR_RETURN_IF_ERROR(UnpackMessage(plan, *job.mutable_plan()));
  if (left_units.has_value()) {
    job.mutable_plan()->set_left_units(*left_units);
  }
  if (!evaluation.empty()) {
    DPAR_RETURN_IF_ERROR(UnpackMessage(evaluation, *job.mutable_evaluation()));
  }
  if (!progress.empty() && job.state() == v1::Job::RUNNING) {
    DPAR_RETURN_IF_ERROR(UnpackMessage(progress, *job.mutable_progress()));
  }
  return stored;
}

std::string JobsText(absl::string_view where_and_order) {
  return absl::StrCat("SELECT ", kStateColumns, ", ", kMessageColumns, " FROM jobs WHERE ", where_and_order);
}

absl::StatusOr<std::vector<StoredJob>> LoadJobs(Transaction& transaction, absl::string_view where_and_order,
                                                const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, transaction.Query(JobsText(where_and_order), parameters));
  std::vector<StoredJob> jobs;
  jobs.reserve(rows.size());
  for (const Row& row : rows) {
    DPAR_ASSIGN_OR_RETURN(StoredJob job, ReadJob(row));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string LockText(const Transaction& transaction) {
  return absl::StrCat("SELECT ", kStateColumns, " FROM jobs WHERE name = $1", transaction.for_update());
}

absl::Status Ended(const std::string& name) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED,
                   absl::StrCat(name, " has ended or is not running under this lease"), {{"resource", name}});
}

// Tenants with queued jobs, in the order in which their turn comes, and how many of their jobs run. The index on
// (state, tenant, ...) is skipped through from tenant to tenant: no queued job but the first of each is looked at.
struct Waiting {
  std::string tenant;
  int64_t running = 0;
  int64_t taken = 0;  // of its jobs, just now
  bool has_more = true;
};
absl::StatusOr<std::vector<Waiting>> WaitingTenants(Transaction& transaction) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(
          "WITH RECURSIVE waiting(tenant) AS ("
          "SELECT MIN(tenant) FROM jobs WHERE state = $1 "
          "UNION ALL "
          "SELECT (SELECT MIN(j.tenant) FROM jobs j WHERE j.state = $1 AND j.tenant > waiting.tenant) FROM waiting "
          "WHERE waiting.tenant IS NOT NULL) "
          "SELECT w.tenant, COALESCE(r.jobs, 0) AS running, "
          "COALESCE((SELECT MAX(s.start_time) FROM jobs s WHERE s.tenant = w.tenant AND s.start_time IS NOT NULL), 0) "
          "AS last_start "
          "FROM waiting w LEFT JOIN (SELECT tenant, COUNT(*) AS jobs FROM jobs WHERE state = $2 GROUP BY tenant) r "
          "ON r.tenant = w.tenant WHERE w.tenant IS NOT NULL ORDER BY running, last_start, w.tenant",
          {kQueued, kRunning}));
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

// The tenant's next jobs that this server could run at all and that nobody else is taking. What a frozen budget has
// reserved is about to be ended, and must not run meanwhile.
constexpr absl::string_view kNextOf =
    "state = $1 AND tenant = $2 AND not_before <= $3 AND memory_bytes <= $4 AND NOT EXISTS (SELECT 1 FROM budgets "
    "WHERE budgets.id = jobs.budget_id AND budgets.frozen_reason <> '') ORDER BY priority DESC, create_time, name "
    "LIMIT $5";

std::vector<Value> NextOf(const Waiting& waiting, const LeaseRequest& request, int64_t jobs) {
  return {kQueued, waiting.tenant, absl::ToUnixMicros(request.now), request.total_bytes, waiting.taken + jobs};
}

// Whose turns the next jobs are, as positions in `tenants`, if all had enough: one by one, each that of whoever has the
// fewest running. `tenants` are in the order of their turns; who was given a job comes after those with as many.
std::vector<size_t> DivideFairly(const std::vector<Waiting>& tenants, int64_t max_running_jobs, int64_t jobs) {
  std::vector<size_t> turns;
  std::deque<std::pair<int64_t, size_t>> line;  // jobs running, tenant
  for (size_t i = 0; i < tenants.size(); ++i) {
    line.emplace_back(tenants[i].running, i);
  }
  for (; jobs > 0 && !line.empty() && line.front().first < max_running_jobs; --jobs) {
    const auto [running, tenant] = line.front();
    line.pop_front();
    turns.push_back(tenant);
    const auto behind = std::upper_bound(line.begin(), line.end(), running + 1,
                                         [](int64_t value, const auto& place) { return value < place.first; });
    line.insert(behind, {running + 1, tenant});
  }
  return turns;
}

// The next jobs of the tenants whose turns these are, in that order, without those that were `taken` before, which are
// still found. A tenant that has fewer is left out and noted.
absl::StatusOr<std::vector<StoredJob>> LoadNext(Transaction& transaction, const LeaseRequest& request,
                                                const std::vector<size_t>& turns,
                                                const absl::flat_hash_set<std::string>& taken,
                                                std::vector<Waiting>& tenants) {
  std::map<size_t, int64_t> counts;
  for (const size_t tenant : turns) {
    ++counts[tenant];
  }
  const std::string where = absl::StrCat(kNextOf, transaction.skip_locked());
  for (const auto& [tenant, count] : counts) {
    DPAR_RETURN_IF_ERROR(transaction.QueryAhead(JobsText(where), NextOf(tenants[tenant], request, count)));
  }
  std::map<size_t, std::vector<StoredJob>> found;
  for (const auto& [tenant, count] : counts) {
    DPAR_ASSIGN_OR_RETURN(found[tenant], LoadJobs(transaction, where, NextOf(tenants[tenant], request, count)));
    std::erase_if(found[tenant], [&taken](const StoredJob& job) { return taken.contains(job.job.name()); });
    found[tenant].resize(std::min(found[tenant].size(), static_cast<size_t>(count)));
    const auto size = static_cast<int64_t>(found[tenant].size());
    tenants[tenant].has_more = size == count;
    tenants[tenant].taken += size;
    tenants[tenant].running += size;
  }
  std::vector<StoredJob> jobs;
  std::map<size_t, size_t> next;
  for (const size_t tenant : turns) {
    if (const size_t i = next[tenant]++; i < found[tenant].size()) {
      jobs.push_back(std::move(found[tenant][i]));
    }
  }
  return jobs;
}

absl::Status StartLease(Transaction& transaction, const LeaseRequest& request, StoredJob& stored) {
  v1::Job& job = stored.job;
  job.set_state(v1::Job::RUNNING);
  job.set_attempts(job.attempts() + 1);
  *job.mutable_start_time() = ToTimestamp(absl::ToUnixMicros(request.now));
  stored.lease += 1;
  stored.lease_expire_time = request.now + request.duration;
  DPAR_RETURN_IF_ERROR(CheckJob(stored, job.has_evaluation()));
  return transaction.ExecuteLater(
      "UPDATE jobs SET state = $2, attempts = $3, start_time = $4, lease = $5, lease_owner = $6, "
      "lease_expire_time = $7, progress = NULL WHERE name = $1",
      {job.name(), kRunning, int64_t{job.attempts()}, ToMicroseconds(job.start_time()), stored.lease, request.owner,
       absl::ToUnixMicros(request.now + request.duration)},
      CorruptJob("a job was gone while it was leased", job.name()));
}

}  // namespace

JobTexts MakeJobTexts(const v1::Job& job) {
  v1::Plan plan = job.plan();
  plan.clear_left_units();
  return {PackMessage(job.spec()), PackMessage(plan)};
}

absl::Status Enqueue(Transaction& transaction, const StoredJob& stored, const JobTexts& texts) {
  const v1::Job& job = stored.job;
  const std::string tenant = TenantOf(job.name());
  return transaction.ExecuteLater(
      "INSERT INTO jobs (name, tenant, dataset, budget_id, spec, plan, state, failure, create_time, attempts, "
      "cancel_requested, priority, memory_bytes, left_units, request_fingerprint) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, '', $8, 0, 0, $9, $10, $11, $12)",
      {job.name(), tenant, job.spec().dataset(), TextOrNull(stored.budget_id), texts.spec, texts.plan, kQueued,
       ToMicroseconds(job.create_time()), int64_t{job.priority()}, job.memory_bytes(), job.plan().left_units(),
       stored.fingerprint},
      CorruptJob("a job was not written", job.name()));
}

absl::Status CheckRoomAhead(Transaction& transaction, const std::string& dataset) {
  return transaction.QueryAhead(kCountLive, {kQueued, kRunning, TenantOf(dataset)});
}

absl::Status CheckRoom(Transaction& transaction, const std::string& dataset, int64_t max_queued) {
  const std::string tenant = TenantOf(dataset);
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, transaction.Query(kCountLive, {kQueued, kRunning, tenant}));
  RowReader reader(rows.at(0));
  const int64_t live = reader.Int();
  DPAR_RETURN_IF_ERROR(reader.status());
  if (live + transaction.CountUnseen(tenant) < max_queued) {
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
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT (SELECT COUNT(*) FROM jobs WHERE state = $2 AND tenant = $1 AND dataset = $4) + "
                        "(SELECT COUNT(*) FROM jobs WHERE state = $3 AND tenant = $1 AND dataset = $4)",
                        {TenantOf(dataset), kQueued, kRunning, dataset}));
  RowReader reader(rows.at(0));
  const int64_t count = reader.Int();
  DPAR_RETURN_IF_ERROR(reader.status());
  return count;
}

absl::StatusOr<QueueState> GetQueueState(Transaction& transaction, const std::string& tenant) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT state, COUNT(*), MIN(create_time) FROM jobs WHERE state IN ($1, $2) "
                                          "AND ($3 = '' OR tenant = $3) GROUP BY state",
                                          {kQueued, kRunning, tenant}));
  QueueState queue;
  for (const Row& row : rows) {
    RowReader reader(row);
    const bool queued = reader.Int() == kQueued;
    (queued ? queue.queued : queue.running) = reader.Int();
    const absl::Time oldest = absl::FromUnixMicros(reader.Int());
    DPAR_RETURN_IF_ERROR(reader.status());
    if (queued) {
      queue.oldest_queued = oldest;
    }
  }
  return queue;
}

absl::StatusOr<StoredJob> LockJob(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, transaction.Query(LockText(transaction), {name}));
  if (rows.empty()) {
    return ResourceNotFound(name);
  }
  RowReader reader(rows[0]);
  return ReadState(reader);
}

absl::Status LockJobAhead(Transaction& transaction, const std::string& name) {
  return transaction.LockAhead(Guard::kJob, name, LockText(transaction));
}

absl::StatusOr<std::vector<StoredJob>> Lease(Transaction& transaction, const LeaseRequest& request) {
  DPAR_ASSIGN_OR_RETURN(std::vector<Waiting> tenants, WaitingTenants(transaction));
  std::vector<StoredJob> leased;
  absl::flat_hash_set<std::string> taken;
  int64_t free_bytes = request.free_bytes;
  bool fits = true;
  // Until there are enough, or no tenant has more, or has too many running: each round, some tenant had too few.
  while (fits && static_cast<int64_t>(leased.size()) < request.max_jobs) {
    const std::vector<size_t> turns =
        DivideFairly(tenants, request.max_running_jobs, request.max_jobs - static_cast<int64_t>(leased.size()));
    if (turns.empty()) {
      break;
    }
    DPAR_ASSIGN_OR_RETURN(std::vector<StoredJob> next, LoadNext(transaction, request, turns, taken, tenants));
    for (StoredJob& job : next) {
      fits = fits && job.job.memory_bytes() <= free_bytes;
      if (fits) {
        free_bytes -= job.job.memory_bytes();
        taken.insert(job.job.name());
        leased.push_back(std::move(job));
      }
    }
    std::erase_if(tenants, [](const Waiting& waiting) { return !waiting.has_more; });
    std::stable_sort(tenants.begin(), tenants.end(), [](const Waiting& a, const Waiting& b) {
      return std::pair(a.running, a.taken > 0) < std::pair(b.running, b.taken > 0);
    });
  }
  for (StoredJob& job : leased) {
    DPAR_RETURN_IF_ERROR(StartLease(transaction, request, job));
  }
  return leased;
}

absl::Status CheckLease(const StoredJob& job, int64_t lease, absl::Time now) {
  const bool held = job.job.state() == v1::Job::RUNNING && job.lease == lease && job.lease_expire_time > now;
  return held ? absl::OkStatus() : Ended(job.job.name());
}

absl::StatusOr<StoredJob> HoldLease(Transaction& transaction, const std::string& name, int64_t lease, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(StoredJob stored, LockJob(transaction, name));
  DPAR_RETURN_IF_ERROR(CheckLease(stored, lease, now));
  return stored;
}

absl::StatusOr<StoredJob> Renew(Transaction& transaction, const std::string& name, int64_t lease, absl::Time now,
                                absl::Duration duration, const std::optional<v1::JobProgress>& progress) {
  DPAR_ASSIGN_OR_RETURN(StoredJob stored, HoldLease(transaction, name, lease, now));
  std::string text;
  if (progress.has_value()) {
    text = PackMessage(*progress);
  }
  DPAR_RETURN_IF_ERROR(transaction.ExecuteLater("UPDATE jobs SET lease_expire_time = $2, progress = $3 WHERE name = $1",
                                                {name, absl::ToUnixMicros(now + duration), TextOrNull(text)},
                                                Ended(name)));
  return stored;
}

absl::StatusOr<std::vector<StoredJob>> OrphanedJobs(Transaction& transaction, absl::Time now, bool everyone) {
  const int64_t expired_before = everyone ? std::numeric_limits<int64_t>::max() : absl::ToUnixMicros(now);
  return LoadJobs(transaction, "state = $1 AND lease_expire_time <= $2 ORDER BY create_time, name",
                  {kRunning, expired_before});
}

absl::Status Requeue(Transaction& transaction, const std::string& name, bool count_attempt, absl::Time not_before) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t changed,
      transaction.Execute("UPDATE jobs SET state = $2, attempts = attempts - $4, not_before = $5, progress = NULL "
                          "WHERE name = $1 AND state = $3",
                          {name, kQueued, kRunning, int64_t{count_attempt ? 0 : 1}, absl::ToUnixMicros(not_before)}));
  return changed == 1 ? absl::OkStatus() : Ended(name);
}

absl::Status Succeed(Transaction& transaction, const std::string& name, const JobOutput& output, absl::Time now) {
  std::string evaluation;
  if (output.evaluation.has_value()) {
    evaluation = PackMessage(*output.evaluation);
  }
  DPAR_RETURN_IF_ERROR(transaction.ExecuteLater(
      "UPDATE jobs SET state = $2, end_time = $3, evaluation = $6, progress = NULL "
      "WHERE name = $1 AND state = $4 AND lease = $5",
      {name, int64_t{v1::Job::SUCCEEDED}, absl::ToUnixMicros(now), kRunning, output.lease, TextOrNull(evaluation)},
      Ended(name)));
  return transaction.ExecuteLater(
      "INSERT INTO outputs (job, weights_sha256, weights_bytes, script_sha256, script_bytes, envelope, lease) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7)",
      {name, output.weights_sha256, output.weights_bytes, output.script_sha256, output.script_bytes, output.envelope,
       output.lease},
      CorruptJob("a job's output was not written", name));
}

absl::Status End(Transaction& transaction, const std::string& name, v1::Job::State state, const std::string& failure,
                 absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t changed,
      transaction.Execute("UPDATE jobs SET state = $2, failure = $3, end_time = $4, progress = NULL "
                          "WHERE name = $1 AND state IN ($5, $6)",
                          {name, int64_t{state}, failure, absl::ToUnixMicros(now), kQueued, kRunning}));
  return changed == 1 ? absl::OkStatus() : Ended(name);
}

absl::Status RequestCancel(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(
      const int64_t changed,
      transaction.Execute("UPDATE jobs SET cancel_requested = 1 WHERE name = $1 AND state = $2", {name, kRunning}));
  return changed == 1 ? absl::OkStatus() : Ended(name);
}

}  // namespace dpar
