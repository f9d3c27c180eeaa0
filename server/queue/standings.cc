// Reads many jobs' states in as few queries as possible.
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/queue/queue.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

absl::StatusOr<v1::Job> ReadStanding(const Row& row) {
  v1::Job job;
  RowReader reader(row);
  job.set_name(reader.Text());
  job.set_state(static_cast<v1::Job::State>(reader.Int32()));
  const std::string progress = reader.Text();
  const std::string plan = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  if (!v1::Job::State_IsValid(job.state()) || job.state() == v1::Job::STATE_UNSPECIFIED) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a stored job has no state",
                     {{"resource", job.name()}});
  }
  if (!progress.empty() && job.state() == v1::Job::RUNNING) {
    DPAR_RETURN_IF_ERROR(UnpackMessage(progress, *job.mutable_progress()));
  }
  if (!plan.empty()) {
    DPAR_RETURN_IF_ERROR(UnpackMessage(plan, *job.mutable_plan()));
  }
  return job;
}

}  // namespace

absl::StatusOr<JobStandings> GetStandings(Transaction& transaction, const std::vector<std::string>& names) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.QueryNames(
          absl::StrCat("SELECT name, state, COALESCE(progress, ''), CASE WHEN state = ",
                       static_cast<int>(v1::Job::SUCCEEDED), " THEN plan ELSE '' END FROM jobs WHERE name IN ($)"),
          names));
  JobStandings standings;
  for (const Row& row : rows) {
    RowReader reader(row);
    const std::string name = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
    standings.insert_or_assign(name, ReadStanding(row));
  }
  return standings;
}

}  // namespace dpar
