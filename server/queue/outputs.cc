#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/queue/queue.h"
#include "server/resource_name.h"

namespace dpar {

absl::StatusOr<JobOutput> GetOutput(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(transaction, name));
  if (stored.job.state() != v1::Job::SUCCEEDED) {
    const std::string state = v1::Job::State_Name(stored.job.state());
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_NOT_SUCCEEDED,
                     absl::StrCat(name, " is ", state, "; only a job that succeeded has a model and a certificate"),
                     {{"state", state}});
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT envelope, lease FROM outputs WHERE job = $1", {name}));
  if (rows.size() != 1) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a job that succeeded has no stored output",
                     {{"resource", name}});
  }
  RowReader reader(rows[0]);
  JobOutput output;
  output.envelope = reader.Text();
  output.lease = reader.Int();
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> files,
                        transaction.Query("SELECT name, sha256, bytes FROM output_files WHERE job = $1", {name}));
  for (const Row& row : files) {
    RowReader file(row);
    const std::string file_name = file.Text();
    OutputFile& stored_file = output.files[file_name];
    stored_file.sha256 = file.Text();
    stored_file.bytes = file.Int();
    DPAR_RETURN_IF_ERROR(file.status());
  }
  if (stored.job.has_evaluation()) {
    output.evaluation = stored.job.evaluation();
  }
  return output;
}

absl::StatusOr<std::vector<std::string>> Envelopes(Transaction& transaction, const std::string& population) {
  return transaction.QueryTexts(
      "SELECT o.envelope FROM jobs j JOIN outputs o ON o.job = j.name WHERE j.tenant = $2 AND j.population = $1 "
      "ORDER BY j.name",
      {population, TenantOf(population)});
}

}  // namespace dpar
