#include "tests/load/clients.h"

#include <algorithm>
#include <memory>

#include "core/certificate/digest.h"

namespace dpar::load {
namespace {

// So little that a budget lasts for thousands.
constexpr double kEpsilon = 0.01;
constexpr int64_t kSteps = 20;
// Enough in the queue that a watcher waits for its job.
constexpr size_t kMostLiveJobs = 10;
// Bounds on what one client asks for, however fast the server is.
constexpr int64_t kMostJobs = 5000;
constexpr int64_t kMostUploads = 2000;
constexpr int64_t kCancelEvery = 8;
constexpr int64_t kDamageEvery = 8;
constexpr absl::Duration kPause = absl::Milliseconds(20);

template <typename Stub, typename Request, typename Response>
e2e::Answer<Response> Call(LoadSite& site, const e2e::Client& client, const char* name,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                           const Request& request) {
  return site.stats.Time(name, [&] {
    e2e::Answer<Response> answer;
    const std::unique_ptr<grpc::ClientContext> context = e2e::MakeContext(client.token(), kDeadline);
    answer.status = (client.stub<Stub>().*method)(context.get(), request, &answer.value);
    return answer;
  });
}

class OpenWatch {
 public:
  explicit OpenWatch(LoadSite& site) : site_(site) {
    const int now = ++site_.watching;
    int most = site_.most_watching;
    while (now > most && !site_.most_watching.compare_exchange_weak(most, now)) {
    }
  }
  ~OpenWatch() { --site_.watching; }
  OpenWatch(const OpenWatch&) = delete;
  OpenWatch& operator=(const OpenWatch&) = delete;

 private:
  LoadSite& site_;
};

// Writes everything in one stream.
grpc::Status Write(LoadSite& site, const e2e::Client& client, const std::string& upload, const std::string& bytes) {
  return site.stats.Time("WriteUpload", [&] { return e2e::WriteBytes(client, upload, 0, bytes); }).status;
}

// One upload from its declaration to the end of its dataset.
void UploadOnce(LoadSite& site, const e2e::Client& client, const v1::OpenUploadRequest& request,
                const std::string& bytes, bool damaged) {
  using Stub = v1::DatasetService::Stub;
  const auto opened = Call(site, client, "OpenUpload", &Stub::OpenUpload, request);
  if (!opened.status.ok() || !Write(site, client, opened.value.name(), bytes).ok()) return;
  v1::FinishUploadRequest finish;
  finish.set_name(opened.value.name());
  finish.set_sha256(Sha256Hex(bytes));
  finish.set_request_id(e2e::NewRequestId());
  if (damaged) {
    e2e::Answer<v1::FinishUploadResponse> answer;
    const std::unique_ptr<grpc::ClientContext> context = e2e::MakeContext(client.token(), kDeadline);
    answer.status = client.stub<Stub>().FinishUpload(context.get(), finish, &answer.value);
    EXPECT_THAT(answer.status, e2e::IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_GRAPH));
    return;
  }
  const auto finished = Call(site, client, "FinishUpload", &Stub::FinishUpload, finish);
  if (!finished.status.ok()) return;
  v1::GetDatasetRequest get;
  get.set_name(finished.value.dataset().name());
  const auto dataset = Call(site, client, "GetDataset", &Stub::GetDataset, get);
  EXPECT_EQ(dataset.value.node_count(), request.node_count());
  v1::DeleteDatasetRequest remove;
  remove.set_name(get.name());
  remove.set_request_id(e2e::NewRequestId());
  Call(site, client, "DeleteDataset", &Stub::DeleteDataset, remove);
}

}  // namespace

void Submitter::Run() {
  const e2e::Client client = site_.server.Owner(tenant_.access);
  while (!site_.stop) {
    if (live_.size() < kMostLiveJobs && accepted_ < kMostJobs) {
      Submit(client);
    }
    Poll(client);
    absl::SleepFor(kPause);
  }
  const absl::Time deadline = absl::Now() + kDeadline;
  while (!live_.empty() && absl::Now() < deadline) {
    Poll(client);
    absl::SleepFor(kPause);
  }
  EXPECT_TRUE(live_.empty()) << live_.size() << " jobs have not ended, the first is " << live_.front();
}

void Submitter::Submit(const e2e::Client& client) {
  v1::CreateJobRequest request = e2e::JobRequest(tenant_.dataset, kEpsilon);
  request.mutable_spec()->mutable_options()->set_steps(kSteps);
  const auto job = Call(site_, client, "CreateJob", &v1::TrainingService::Stub::CreateJob, request);
  if (!job.status.ok()) return;
  ++accepted_;
  live_.push_back(job.value.name());
  tenant_.Submitted(job.value.name());
  if (accepted_ % kCancelEvery == 0) {
    Cancel(client);
  }
  v1::GetBudgetRequest budget;
  budget.set_name(e2e::OwnPopulation(tenant_.dataset));
  Call(site_, client, "GetBudget", &v1::BudgetService::Stub::GetBudget, budget);
  v1::ListJobsRequest list;
  list.set_parent(tenant_.access.name);
  list.set_page_size(20);
  Call(site_, client, "ListJobs", &v1::TrainingService::Stub::ListJobs, list);
}

void Submitter::Cancel(const e2e::Client& client) {
  // A job that ended first cannot be cancelled, which is no error of the server.
  const auto answer = e2e::CancelJob(client, live_.back());
  EXPECT_TRUE(answer.status.ok() ||
              ::testing::Matches(e2e::IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::JOB_ENDED))(answer.status))
      << answer.status.error_message();
  cancelled_ += answer.status.ok() ? 1 : 0;
}

void Submitter::Poll(const e2e::Client& client) {
  while (!live_.empty()) {
    v1::GetJobRequest request;
    request.set_name(live_.front());
    const auto job = Call(site_, client, "GetJob", &v1::TrainingService::Stub::GetJob, request);
    if (!job.status.ok() || !job.value.has_end_time()) return;
    ++ended_[job.value.state()];
    live_.pop_front();
  }
}

void WatchJobs(LoadSite& site, const LoadedTenant& tenant, const e2e::Client& client) {
  while (!site.stop) {
    const std::string job = tenant.newest_job();
    if (!job.empty()) {
      const OpenWatch open(site);
      const e2e::Watched watched =
          site.stats.Time("WatchJob", [&] { return e2e::WatchUntil(client, job, e2e::IsTerminal, kDeadline); });
      EXPECT_TRUE(!watched.status.ok() || (!watched.messages.empty() && watched.messages.back().terminal()))
          << "a watch of " << job << " ended before it";
    }
    absl::SleepFor(kPause);
  }
}

void UploadFiles(LoadSite& site, const LoadedTenant& tenant, const std::string& bytes, const PublicSizes& sizes) {
  const e2e::Client client = site.server.Owner(tenant.access);
  std::string damaged = bytes;
  std::fill(damaged.begin(), damaged.begin() + 4, 'x');
  for (int64_t i = 1; i <= kMostUploads && !site.stop; ++i) {
    const bool spoil = i % kDamageEvery == 0;
    UploadOnce(site, client, e2e::OpenRequest(tenant.access.name, bytes, sizes), spoil ? damaged : bytes, spoil);
    absl::SleepFor(kPause);
  }
}

}  // namespace dpar::load
