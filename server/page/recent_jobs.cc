#include "server/page/recent_jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kQueued = v1::Job::QUEUED;
constexpr int64_t kRunning = v1::Job::RUNNING;
constexpr int64_t kFailed = v1::Job::FAILED;

// The tenants with the newest jobs; no other tenant has one of the `limit` newest jobs.
absl::StatusOr<std::vector<std::string>> BusiestTenants(Transaction& transaction, int64_t limit) {
  return transaction.QueryTexts(
      "SELECT name FROM (SELECT t.name AS name, (SELECT MAX(j.create_time) FROM jobs j WHERE "
      "j.tenant = t.name) AS newest FROM tenants t) AS newest_jobs WHERE newest IS NOT NULL "
      "ORDER BY newest DESC LIMIT $1",
      {limit});
}

struct EndedJob {
  int64_t create_time = 0;
  std::string name;
};
absl::Status AddEnded(Transaction& transaction, const std::string& tenant, int64_t limit, std::vector<EndedJob>& jobs) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT create_time, name FROM jobs WHERE tenant = $1 AND end_time IS NOT "
                                          "NULL ORDER BY create_time DESC, name DESC LIMIT $2",
                                          {tenant, limit}));
  for (const Row& row : rows) {
    RowReader reader(row);
    EndedJob& job = jobs.emplace_back();
    job.create_time = reader.Int();
    job.name = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return absl::OkStatus();
}

absl::StatusOr<NotedJobs> Noted(Transaction& transaction, absl::string_view from_where, absl::string_view time,
                                std::vector<Value> parameters, int64_t limit) {
  NotedJobs noted;
  DPAR_ASSIGN_OR_RETURN(noted.count, transaction.QueryInt(absl::StrCat("SELECT COUNT(*) ", from_where), parameters));
  if (noted.count == 0) {
    return noted;
  }
  parameters.emplace_back(limit);
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query(absl::StrCat("SELECT j.name, j.failure, ", time, " ", from_where,
                                                       " ORDER BY 3 DESC, 1 LIMIT $", parameters.size()),
                                          parameters));
  for (const Row& row : rows) {
    RowReader reader(row);
    NotedJob& job = noted.jobs.emplace_back();
    job.name = reader.Text();
    job.failure = reader.Text();
    job.time = absl::FromUnixMicros(reader.Int());
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return noted;
}

}  // namespace

absl::StatusOr<std::vector<v1::Job>> ListRecentJobs(Transaction& transaction, const std::string& tenant,
                                                    int64_t limit) {
  std::vector<std::string> names;
  for (const int64_t state : {kRunning, kQueued}) {
    DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> live,
                          transaction.QueryTexts("SELECT name FROM jobs WHERE state = $1 AND ($2 = '' OR tenant = $2) "
                                                 "ORDER BY create_time, name LIMIT $3",
                                                 {state, tenant, limit}));
    names.insert(names.end(), live.begin(), live.end());
  }
  std::vector<std::string> tenants = {tenant};
  if (tenant.empty()) {
    DPAR_ASSIGN_OR_RETURN(tenants, BusiestTenants(transaction, limit));
  }
  std::vector<EndedJob> ended;
  for (const std::string& one : tenants) {
    DPAR_RETURN_IF_ERROR(AddEnded(transaction, one, limit, ended));
  }
  std::sort(ended.begin(), ended.end(), [](const EndedJob& a, const EndedJob& b) {
    return std::pair(a.create_time, a.name) > std::pair(b.create_time, b.name);
  });
  for (const EndedJob& job : ended) {
    names.push_back(job.name);
  }
  names.resize(std::min(names.size(), static_cast<size_t>(limit)));
  std::vector<v1::Job> jobs;
  for (const std::string& name : names) {
    DPAR_ASSIGN_OR_RETURN(StoredJob stored, GetJob(transaction, name));
    jobs.push_back(std::move(stored.job));
  }
  return jobs;
}

// Tenant by tenant, to use the index of jobs by start time.
absl::StatusOr<NotedJobs> ListFailedJobs(Transaction& transaction, const std::string& tenant, absl::Time since,
                                         int64_t limit) {
  return Noted(transaction,
               "FROM tenants t JOIN jobs j ON j.tenant = t.name WHERE ($1 = '' OR t.name = $1) AND j.start_time >= $2 "
               "AND j.state = $3",
               "COALESCE(j.end_time, 0)", {tenant, absl::ToUnixMicros(since), kFailed}, limit);
}

absl::StatusOr<NotedJobs> ListExpiredLeases(Transaction& transaction, const std::string& tenant, absl::Time now,
                                            int64_t limit) {
  return Noted(transaction,
               "FROM jobs j WHERE j.state = $1 AND j.lease_expire_time < $2 AND ($3 = '' OR j.tenant = $3)",
               "j.lease_expire_time", {kRunning, absl::ToUnixMicros(now), tenant}, limit);
}

absl::StatusOr<std::vector<std::string>> JobsWithCertificates(Transaction& transaction,
                                                              const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> one,
                          transaction.QueryTexts("SELECT job FROM outputs WHERE job = $1", {name}));
    found.insert(found.end(), one.begin(), one.end());
  }
  return found;
}

}  // namespace dpar
