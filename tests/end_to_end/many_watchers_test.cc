// What thousands of watchers cost, and what slow and vanished ones do to the others.
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/status.pb.h"
#include "tests/end_to_end/watchers.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

constexpr int kChannels = 4;
constexpr int kWatchers = 2'000;
// gRPC's own threads come and go by a few, more where there are many cores; with one for each watcher there would be
// 2,000 more.
int64_t MaxMoreThreads() { return 20 + 4 * static_cast<int64_t>(std::thread::hardware_concurrency()); }
// The state of a call in gRPC is most of it. Sanitizers keep what was freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kMaxKilobytesForOne = 1'024;
#else
constexpr int64_t kMaxKilobytesForOne = 64;
#endif

// A number of /proc/PID/status.
int64_t ProcessFigure(const TestServer& server, const std::string& key) {
  std::istringstream lines(ReadFile(absl::StrCat("/proc/", server.pid(), "/status")));
  std::string word;
  while (lines >> word) {
    int64_t value = 0;
    if (word == key + ":" && lines >> value) return value;
  }
  ADD_FAILURE() << "no " << key;
  return 0;
}

bool AwaitLog(const TestServer& server, const std::string& text) {
  const absl::Time deadline = absl::Now() + absl::Seconds(90);
  while (absl::Now() < deadline) {
    if (absl::StrContains(server.log(), text)) return true;
    absl::SleepFor(absl::Milliseconds(50));
  }
  return false;
}

// A client whose streams take a few bytes and no more until they are read.
Client NarrowClient(const TestServer& server, const std::string& token) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 5);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return Client(server.MakeChannel(arguments), token);
}

std::unique_ptr<grpc::ClientReader<v1::WatchJobResponse>> OpenWithoutReading(const Client& client,
                                                                             grpc::ClientContext& context,
                                                                             const std::string& job) {
  v1::WatchJobRequest request;
  request.set_name(job);
  return client.stub<v1::TrainingService::Stub>().WatchJob(&context, request);
}

// A server that runs nothing, so that a job stays queued until it is cancelled, and one such job.
class ManyWatchersTest : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> flags) {
    flags.emplace_back("--no-worker");
    server_ = std::make_unique<TestServer>(flags);
    ASSERT_TRUE(server_->Start());
    tenant_ = server_->NewTenant();
    const std::string dataset = UploadGraph(Owner(), tenant_.name, MakeGraph(900));
    const auto created = CreateJob(Owner(), JobRequest(dataset, 1));
    ASSERT_THAT(created.status, IsOk());
    job_ = created.value.name();
  }
  [[nodiscard]] Client Owner() const { return server_->Owner(tenant_); }

  std::unique_ptr<TestServer> server_;
  TenantAccess tenant_;
  std::string job_;
};

TEST_F(ManyWatchersTest, TwoThousandTakeNoThreadsAndLittleMemoryAndAllSeeTheEnd) {
  Start({"--max-watches", "2100", "--max-idle-seconds", "600"});
  std::vector<Client> clients;
  for (int i = 0; i < kChannels; ++i) clients.push_back(Owner());
  Watchers first;
  for (const Client& client : clients) first.Open(client, job_);
  ASSERT_TRUE(first.Await([](const auto& totals) { return totals.heard == kChannels; }));
  const int64_t threads = ProcessFigure(*server_, "Threads");
  const int64_t kilobytes = ProcessFigure(*server_, "VmRSS");

  // One that never reads is among them, and is nobody's concern.
  const Client narrow = NarrowClient(*server_, tenant_.owner_token);
  const auto context = MakeContext(tenant_.owner_token, absl::Minutes(5));
  const auto stalled = OpenWithoutReading(narrow, *context, job_);

  Watchers watchers;
  const absl::Time start = absl::Now();
  for (int i = 0; i < kWatchers; ++i) watchers.Open(clients[static_cast<size_t>(i % kChannels)], job_);
  ASSERT_TRUE(watchers.Await([](const auto& totals) { return totals.heard == kWatchers; }));
  const absl::Duration to_open = absl::Now() - start;
  const int64_t more_threads = ProcessFigure(*server_, "Threads") - threads;
  const int64_t more_kilobytes = ProcessFigure(*server_, "VmRSS") - kilobytes;
  EXPECT_LE(more_threads, MaxMoreThreads());
  EXPECT_LE(more_kilobytes, kWatchers * kMaxKilobytesForOne);

  const absl::Time asked = absl::Now();
  ASSERT_THAT(CancelJob(Owner(), job_).status, IsOk());
  ASSERT_TRUE(watchers.Await([](const auto& totals) { return totals.ended == kWatchers; }));
  std::cout << "opened in " << to_open << ", " << more_threads << " threads and "
            << static_cast<double>(more_kilobytes) / kWatchers << " kB for each more; all saw the end after "
            << absl::Now() - asked << "\n";
  const Watchers::Totals totals = watchers.totals();
  EXPECT_EQ(totals.terminal, kWatchers);
  for (const grpc::Status& status : totals.statuses) ASSERT_THAT(status, IsOk());
  EXPECT_FALSE(absl::StrContains(server_->log(), "DEADLINE_EXCEEDED"));
  context->TryCancel();
  stalled->Finish();
}

TEST_F(ManyWatchersTest, WhoeverNeverReadsIsDropped) {
  Start({"--max-idle-seconds", "1"});
  const Client narrow = NarrowClient(*server_, tenant_.owner_token);
  const auto context = MakeContext(tenant_.owner_token, absl::Minutes(5));
  const auto stalled = OpenWithoutReading(narrow, *context, job_);
  EXPECT_TRUE(AwaitLog(*server_, "method=TrainingService/WatchJob code=DEADLINE_EXCEEDED reason=LIMIT_EXCEEDED"));
  EXPECT_TRUE(absl::StrContains(server_->log(), "max_idle_seconds"));
  v1::WatchJobResponse message;
  while (stalled->Read(&message)) {
  }
  EXPECT_EQ(stalled->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ManyWatchersTest, ATenantHasOnlySoManyAndThoseThatVanishAreFree) {
  Start({"--max-watches", "20"});
  const TenantAccess other = server_->NewTenant();
  {
    const Client owner = Owner();
    Watchers watchers;
    for (int i = 0; i < 20; ++i) watchers.Open(owner, job_);
    ASSERT_TRUE(watchers.Await([](const auto& totals) { return totals.heard == 20; }));
    const Watched refused = WatchUntil(owner, job_, IsTerminal);
    EXPECT_THAT(refused.status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
    EXPECT_EQ(ErrorMetadata(refused.status, "limit"), "max_watches");
    EXPECT_EQ(ErrorMetadata(refused.status, "maximum"), "20");
    // Another tenant has as many of its own, though it may not know of this job.
    EXPECT_THAT(WatchUntil(server_->Owner(other), other.name + "/jobs/absent", IsTerminal).status,
                IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
    EXPECT_THAT(WatchUntil(server_->Owner(other), job_, IsTerminal).status,
                IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  }
  // Their callers have gone away; the server may hear of it a moment later.
  const Client owner = Owner();
  const absl::Time deadline = absl::Now() + absl::Seconds(90);
  grpc::Status status = grpc::Status::CANCELLED;
  while (!status.ok() && absl::Now() < deadline) {
    const Watched watched = WatchUntil(owner, job_, [](const v1::WatchJobResponse&) { return true; });
    status = watched.status;
  }
  EXPECT_THAT(status, IsOk());
  Watchers again;
  for (int i = 0; i < 19; ++i) again.Open(owner, job_);
  EXPECT_TRUE(again.Await([](const auto& totals) { return totals.heard == 19; }));
}

TEST_F(ManyWatchersTest, AWatcherWhoseProcessIsKilledIsFreed) {
  Start({"--max-watches", "1"});
  const Client owner = Owner();
  const std::string shown = server_->Scratch("watch.out");
  Process watcher({BinaryPath("dpar"), "watch", job_},
                  {{"DPAR_SERVER", server_->address()}, {"DPAR_CA", server_->ca_file()}, {"DPAR_TOKEN", owner.token()}},
                  shown, shown);
  const absl::Time deadline = absl::Now() + absl::Seconds(90);
  while (!absl::StrContains(ReadFile(shown), "queued") && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  const auto watch_once = [&] { return WatchUntil(owner, job_, [](const auto&) { return true; }).status; };
  ASSERT_THAT(watch_once(), IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED)) << ReadFile(shown);
  watcher.Signal(SIGKILL);
  grpc::Status status = watch_once();
  while (!status.ok() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(20));
    status = watch_once();
  }
  EXPECT_THAT(status, IsOk());
}

TEST_F(ManyWatchersTest, WhenTheServerStopsAllAreToldToComeBack) {
  Start({});
  const Client owner = Owner();
  Watchers watchers;
  for (int i = 0; i < 100; ++i) watchers.Open(owner, job_);
  ASSERT_TRUE(watchers.Await([](const auto& totals) { return totals.heard == 100; }));
  EXPECT_EQ(server_->Terminate(), std::optional<int>(0));
  ASSERT_TRUE(watchers.Await([](const auto& totals) { return totals.ended == 100; }));
  for (const grpc::Status& status : watchers.totals().statuses) {
    EXPECT_THAT(status, IsError(grpc::StatusCode::UNAVAILABLE, v1::SERVER_UNAVAILABLE));
    google::rpc::Status details;
    ASSERT_TRUE(details.ParseFromString(status.error_details()));
    google::rpc::RetryInfo retry;
    ASSERT_EQ(details.details_size(), 2);
    ASSERT_TRUE(details.details(1).UnpackTo(&retry));
    EXPECT_EQ(retry.retry_delay().seconds(), 1);
  }
}

}  // namespace
}  // namespace dpar::e2e
