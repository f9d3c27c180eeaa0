#include "tests/crash/load_client.h"

#include <iterator>
#include <vector>

#include "absl/time/clock.h"
#include "core/random/random.h"

namespace dpar::crash {
namespace {

constexpr size_t kMaxLiveJobs = 3;
constexpr int64_t kMaxUploads = 40;
constexpr absl::Duration kWatchTime = absl::Milliseconds(300);
constexpr absl::Duration kPause = absl::Milliseconds(100);
// Of half of the jobs, so that crashes meet jobs in the middle.
constexpr int64_t kSlowSteps = 20'000;

bool Has(const grpc::Status& status, grpc::StatusCode code, v1::ErrorReason reason) {
  return ::testing::Matches(e2e::IsError(code, reason))(status);
}

}  // namespace

void LoadClient::Run(const std::atomic<bool>& stop) {
  while (!stop && !::testing::Test::HasFailure()) {
    Poll();
    const uint64_t draw = UniformBelow(random_, 20);
    if (draw < 10) {
      Submit();
    } else if (draw < 13) {
      Cancel();
    } else if (draw < 18) {
      Watch();
    } else if (draw == 18) {
      Upload();
    }
    absl::SleepFor(kPause);
  }
}

void LoadClient::Submit() {
  if (live_.size() >= kMaxLiveJobs) {
    return;
  }
  v1::CreateJobRequest request = QuickJob(tenant_.dataset, epsilon_);
  if (UniformBelow(random_, 2) == 0) {
    request.mutable_spec()->mutable_options()->set_steps(kSlowSteps);
  }
  const auto submit = [&](const e2e::Client& client) { return e2e::CreateJob(client, request); };
  const auto answer = site_.Persist(tenant_.access, submit);
  if (Has(answer.status, grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED)) {
    ++tally_.refusals;
    return;
  }
  ASSERT_THAT(answer.status, e2e::IsOk());
  site_.promises().Accepted(answer.value.name());
  live_.insert(answer.value.name());
  ++tally_.jobs;
  if (UniformBelow(random_, 4) == 0) {
    const auto again = site_.Persist(tenant_.access, submit);
    ASSERT_THAT(again.status, e2e::IsOk());
    EXPECT_EQ(again.value.name(), answer.value.name()) << "one request made two jobs";
    ++tally_.repeats;
  }
}

std::string LoadClient::AnyLiveJob() {
  if (live_.empty()) {
    return "";
  }
  return *std::next(live_.begin(), static_cast<int64_t>(UniformBelow(random_, live_.size())));
}

void LoadClient::Cancel() {
  const std::string job = AnyLiveJob();
  if (job.empty()) {
    return;
  }
  site_.promises().AsksToCancel(job);
  v1::CancelJobRequest request;
  request.set_name(job);
  request.set_request_id(e2e::NewRequestId());
  const auto answer = site_.Persist(tenant_.access, [&](const e2e::Client& client) {
    return client.Call(&v1::TrainingService::Stub::CancelJob, request);
  });
  EXPECT_TRUE(answer.status.ok() || Has(answer.status, grpc::StatusCode::FAILED_PRECONDITION, v1::JOB_ENDED))
      << answer.status.error_message();
  ++tally_.cancels;
}

void LoadClient::Watch() {
  const std::string job = AnyLiveJob();
  if (job.empty()) {
    return;
  }
  const e2e::Watched watched = e2e::WatchUntil(site_.ClientOf(tenant_.access), job, e2e::IsTerminal, kWatchTime);
  const grpc::StatusCode code = watched.status.error_code();
  EXPECT_TRUE(code == grpc::StatusCode::OK || code == grpc::StatusCode::DEADLINE_EXCEEDED ||
              code == grpc::StatusCode::UNAVAILABLE)
      << "watching: " << code << " " << watched.status.error_message();
  ++tally_.watches;
}

void LoadClient::Poll() {
  const std::vector<std::string> names(live_.begin(), live_.end());
  for (const std::string& name : names) {
    const auto answer =
        site_.Persist(tenant_.access, [&](const e2e::Client& client) { return e2e::GetJob(client, name); });
    ASSERT_THAT(answer.status, e2e::IsOk());
    if (answer.value.has_end_time()) {
      site_.promises().Seen(answer.value);
      live_.erase(name);
    }
  }
}

void LoadClient::Upload() {
  if (tally_.uploads >= kMaxUploads) {
    return;
  }
  const Graph graph = e2e::MakeGraph(UniformBits(random_));
  const std::string bytes = e2e::GraphBytes(graph);
  const v1::OpenUploadRequest request = e2e::OpenRequest(tenant_.access.name, bytes, graph.sizes);
  const auto opened = site_.Persist(tenant_.access, [&](const e2e::Client& client) {
    return client.Call(&v1::DatasetService::Stub::OpenUpload, request);
  });
  ASSERT_THAT(opened.status, e2e::IsOk());
  Send(opened.value.name(), bytes);
  const std::string finish_id = e2e::NewRequestId();
  const auto finished = site_.Persist(tenant_.access, [&](const e2e::Client& client) {
    return e2e::Finish(client, opened.value.name(), bytes, finish_id);
  });
  ASSERT_THAT(finished.status, e2e::IsOk());
  site_.promises().Sealed(finished.value.dataset().name());
  ++tally_.uploads;
}

void LoadClient::Send(const std::string& upload, const std::string& bytes) {
  v1::GetUploadRequest get;
  get.set_name(upload);
  const absl::Time deadline = absl::Now() + kPatience;
  while (absl::Now() < deadline) {
    const auto held = site_.Persist(tenant_.access, [&](const e2e::Client& client) {
      return client.Call(&v1::DatasetService::Stub::GetUpload, get);
    });
    ASSERT_THAT(held.status, e2e::IsOk());
    const int64_t offset = held.value.committed_offset();
    if (offset == static_cast<int64_t>(bytes.size())) {
      return;
    }
    const auto written =
        e2e::WriteBytes(site_.ClientOf(tenant_.access), upload, offset, bytes.substr(static_cast<size_t>(offset)));
    ASSERT_TRUE(written.status.ok() || written.status.error_code() == grpc::StatusCode::UNAVAILABLE)
        << "writing: " << written.status.error_code() << " " << written.status.error_message();
  }
  ADD_FAILURE() << "an upload does not come to its end";
}

}  // namespace dpar::crash
