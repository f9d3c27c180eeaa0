#include "tests/neighbours/visible.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/graph/graph_file.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"

namespace dpar::testing {
namespace {

constexpr int64_t kMaxQueued = 10;

WorkerOptions MakeWorkerOptions(int64_t total_bytes) {
  WorkerOptions options;
  options.device = "cpu";
  options.total_bytes = total_bytes;
  return options;
}

// Code, message, reason and metadata: all that a caller gets. Maps come in any order.
std::string Text(const absl::Status& status) {
  std::string text = absl::StrCat("error: ", absl::StatusCodeToString(status.code()), " ", status.message());
  if (const auto info = GetErrorInfo(status); info.has_value()) {
    const std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
    absl::StrAppend(&text, " ", info->reason(), " ", absl::StrJoin(metadata, " ", absl::PairFormatter("=")));
  }
  return absl::StrCat(text, "\n");
}

std::string Text(v1::Job job) {
  job.clear_create_time();
  job.clear_start_time();
  job.clear_end_time();
  if (job.has_evaluation()) {  // a noisy count
    job.mutable_evaluation()->clear_accuracy();
    job.mutable_evaluation()->clear_low();
    job.mutable_evaluation()->clear_high();
  }
  return absl::StrCat("job: ", job.ShortDebugString(), "\n");
}

// Without the digests of what was drawn, random identities and times.
std::string Text(Statement statement) {
  const std::string digest(64, '0');
  for (auto& subject : statement.subjects) {
    subject.second = digest;
  }
  statement.dataset_digest = digest;
  statement.population = "population";
  statement.previous_hash = digest;
  statement.ledger_hash = digest;
  statement.entry_time_microseconds = 0;
  statement.created_at = "2026-01-01T00:00:00Z";
  if (statement.evaluation.has_value()) {
    statement.evaluation->set_accuracy(0);
    statement.evaluation->set_low(0);
    statement.evaluation->set_high(0);
  }
  return absl::StrCat("statement: ", StatementToJson(statement), "\n");
}

}  // namespace

NeighbourServer::NeighbourServer()
    : marks_(store_.directory().root() + "/witness"),
      uploads_(store_.database(), store_.directory(), marks_, Limits()),
      key_(*SigningKey::Generate()),
      board_([this](const Progress& left, absl::Duration /*took*/) {
        const MutexLock lock(&mutex_);
        stages_.push_back(absl::StrCat(left.stage, " ", left.completed, "/", left.total));
      }),
      worker_(
          store_.database(), store_.directory(), [this] { return key_; }, board_,
          MakeWorkerOptions(job_limits_.max_job_bytes)) {
  EXPECT_TRUE(marks_.Make().ok());
  EXPECT_TRUE(worker_.Start().ok());
}

absl::Status NeighbourServer::Upload(const Graph& graph, int64_t max_degree, const std::string& tenant) {
  const std::string path = store_.directory().root() + "/graph.npz";
  DPAR_RETURN_IF_ERROR(WriteGraphFile(path, graph));
  DPAR_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
  v1::OpenUploadRequest open;
  open.set_parent(tenant);
  open.set_request_id("open");
  open.set_dataset_id("d");
  open.set_size_bytes(static_cast<int64_t>(bytes.size()));
  open.set_node_count(graph.sizes.node_count);
  open.set_feature_count(graph.sizes.feature_count);
  open.set_class_count(graph.sizes.class_count);
  open.set_max_degree(max_degree);
  DPAR_ASSIGN_OR_RETURN(const v1::Upload upload, uploads_.Open(open, absl::Now(), random_));
  {
    DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<UploadWriter> writer, uploads_.StartWriting(upload.name(), 0));
    DPAR_RETURN_IF_ERROR(writer->Append(bytes));
    DPAR_RETURN_IF_ERROR(writer->Commit().status());
  }
  v1::FinishUploadRequest finish;
  finish.set_name(upload.name());
  finish.set_request_id("finish");
  finish.set_sha256(Sha256Hex(bytes));
  return uploads_.Finish(finish, {tenant + "/tokens/t", absl::Now()}, random_, [] { return true; }).status();
}

// The dataset, its budget and its ledger.
std::string NeighbourServer::Standing(const std::string& tenant) {
  std::string text;
  const absl::Status status = store_.database().Read([&](Transaction& t) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(v1::Dataset stored, GetDataset(t, tenant + "/datasets/d"));
    EXPECT_EQ(std::exchange(*stored.mutable_content_digest(), "").size(), 64U);
    stored.clear_create_time();
    DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, GetBudget(t, stored.population()));
    text = absl::StrCat("dataset: ", stored.ShortDebugString(), "\nbudget: ", budget.ShortDebugString(), "\n");
    DPAR_ASSIGN_OR_RETURN(const std::vector<v1::LedgerEntry> entries, ListEntries(t, stored.population(), 0, 100));
    for (v1::LedgerEntry entry : entries) {
      entry.clear_hash();
      entry.clear_time();
      absl::StrAppend(&text, "entry: ", entry.ShortDebugString(), "\n");
    }
    return absl::OkStatus();
  });
  return status.ok() ? text : Text(status);
}

std::string NeighbourServer::DryRun(const v1::TrainingSpec& spec) {
  absl::StatusOr<PlannedJob> planned = PlanJob(store_.database(), spec, job_limits_);
  if (!planned.ok()) {
    return Text(planned.status());
  }
  absl::Status status = store_.database().Read([&](Transaction& t) { return CheckPlannedJob(t, *planned); });
  status.Update(DescribeStages(*planned));
  return status.ok() ? Text(planned->stored.job) : Text(status);
}

std::string NeighbourServer::Train(const v1::TrainingSpec& spec, const std::string& tenant) {
  const absl::StatusOr<PlannedJob> planned = PlanJob(store_.database(), spec, job_limits_);
  if (!planned.ok()) {
    return Text(planned.status());
  }
  const std::string name = tenant + "/jobs/j";
  const absl::StatusOr<v1::Job> submitted =
      SubmitOnce(store_.database(), *planned, {name, {}}, kMaxQueued, {tenant + "/tokens/t", absl::Now()});
  if (!submitted.ok()) {
    return Text(submitted.status());
  }
  std::string text = Text(*submitted);
  worker_.Notify(name);
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  v1::Job job = *submitted;
  while (!job.has_end_time() && absl::Now() < deadline) {
    absl::SleepFor(absl::Microseconds(200));
    const auto stored = ReadFrom(store_.database(), [&](Transaction& t) { return GetJob(t, name); });
    job = stored.ok() ? stored->job : v1::Job();
  }
  return absl::StrCat(text, Text(job), Certificate(name), TakeStages());
}

std::string NeighbourServer::Certificate(const std::string& job) {
  const auto output = ReadFrom(store_.database(), [&](Transaction& t) { return GetOutput(t, job); });
  if (!output.ok()) {
    return Text(output.status());
  }
  const auto verified = VerifyCertificate(output->envelope, {key_.verifying_key()}, {});
  if (!verified.ok() || !verified->passed()) {
    return "a certificate that does not verify\n";
  }
  std::string sizes;
  for (const auto& [name, file] : output->files) {
    // An npz is deflated, so that its size follows from its bytes, which bear the noise and are released.
    absl::StrAppend(&sizes, name, name == kWeightsName ? "" : absl::StrCat(": ", file.bytes, " bytes"), "\n");
  }
  return absl::StrCat(sizes, Text(verified->statement));
}

// A job is taken off the board, which ends its last stage, just after its end is stored.
std::string NeighbourServer::TakeStages() {
  const MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !stages_.empty() && absl::StartsWith(stages_.back(), "saving ");
  };
  mutex_.AwaitWithTimeout(Condition(&ended), absl::Seconds(1));
  return absl::StrCat("stages: ", absl::StrJoin(std::exchange(stages_, {}), ", "), "\n");
}

std::string NeighbourServer::Visible(const Graph& graph, int64_t max_degree, const v1::TrainingSpec& asked) {
  const std::string id = absl::StrCat("t", tenants_++);
  const std::string tenant = "tenants/" + id;
  EXPECT_TRUE(store_.database().Write([&](Transaction& t) { return InsertTenant(t, id, id, absl::Now()); }).ok());
  // Why an upload was refused is for the uploader; that there is no dataset is for everybody.
  Upload(graph, max_degree, tenant).IgnoreError();
  v1::TrainingSpec spec = asked;
  spec.set_dataset(tenant + "/datasets/d");
  std::string text = absl::StrCat(DryRun(spec), Train(spec, tenant), Standing(tenant));
  return absl::StrReplaceAll(text, {{tenant + "/", "tenants/T/"}});
}

}  // namespace dpar::testing
