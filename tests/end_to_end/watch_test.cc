// Following a job.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class WatchTest : public SharedServerTest {};

TEST_F(WatchTest, AWatchRisesInSequenceShowsPublicCountersAndEndsWithTheJob) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(
      owner, tenant.name, MakeGraph(700, {.nodes = 5000, .classes = 20, .features = 500, .features_per_node = 20}));
  v1::CreateJobRequest request = JobRequest(dataset, 1);
  request.mutable_spec()->set_method(v1::DPAR_GM);
  const auto created = CreateJob(owner, request);
  ASSERT_THAT(created.status, IsOk());
  const Watched watched = WatchUntil(owner, created.value.name(), IsTerminal);
  ASSERT_THAT(watched.status, IsOk());
  ASSERT_FALSE(watched.messages.empty());

  const std::set<std::string> stages = {"queued", "loading", "structure", "training", "saving", "succeeded"};
  int64_t last_sequence = 0;
  double last_epsilon = 0;
  for (size_t i = 0; i < watched.messages.size(); ++i) {
    const v1::WatchJobResponse& message = watched.messages[i];
    EXPECT_GT(message.sequence(), last_sequence);
    last_sequence = message.sequence();
    EXPECT_EQ(message.terminal(), i + 1 == watched.messages.size());
    EXPECT_EQ(stages.count(message.stage()), 1U) << message.stage();
    EXPECT_TRUE(message.has_time());
    EXPECT_GE(message.completed(), 0);
    if (message.stage() == "training") {
      EXPECT_EQ(message.total(), created.value.plan().steps());
      EXPECT_LE(message.completed(), message.total());
      EXPECT_GE(message.epsilon_so_far(), last_epsilon);
      last_epsilon = message.epsilon_so_far();
    }
    if (message.stage() == "structure") {
      EXPECT_EQ(message.total(), 0);
      EXPECT_FALSE(message.has_rate());
      EXPECT_FALSE(message.has_eta());
    }
    EXPECT_LE(message.epsilon_so_far(), 1);
  }
  EXPECT_EQ(watched.messages.back().state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(watched.messages.back().stage(), "succeeded");
}

TEST_F(WatchTest, AWatchOfAnEndedJobIsOneTerminalMessage) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(701));
  const auto created = CreateJob(owner, JobRequest(dataset, 1));
  WaitForJob(owner, created.value.name());
  const Watched watched = WatchUntil(owner, created.value.name(), IsTerminal);
  EXPECT_THAT(watched.status, IsOk());
  ASSERT_EQ(watched.messages.size(), 1U);
  EXPECT_TRUE(watched.messages[0].terminal());
  EXPECT_EQ(watched.messages[0].state(), v1::Job::SUCCEEDED);
}

TEST_F(WatchTest, AWatchOfAnAbsentJobIsNotFound) {
  const TenantAccess tenant = server().NewTenant();
  EXPECT_THAT(WatchUntil(server().Owner(tenant), tenant.name + "/jobs/absent", IsTerminal).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
}

TEST_F(WatchTest, AWatchMessageHasNoFieldBesidesThePublicCounters) {
  const google::protobuf::Descriptor* message = v1::WatchJobResponse::descriptor();
  std::set<std::string> fields;
  for (int i = 0; i < message->field_count(); ++i) fields.insert(message->field(i)->name());
  EXPECT_EQ(fields, (std::set<std::string>{"sequence", "time", "state", "stage", "completed", "total", "rate", "eta",
                                           "epsilon_so_far", "terminal"}));
}

TEST_F(WatchTest, AWatchEndsWhenItsJobIsCancelled) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string slow = UploadGraph(owner, tenant.name, MakeSlowGraph(702));
  const auto running = CreateJob(owner, JobRequest(slow, 1));
  ASSERT_THAT(running.status, IsOk());
  const Watched watched = WatchUntil(owner, running.value.name(), IsTraining);
  ASSERT_FALSE(watched.messages.empty());
  const v1::WatchJobResponse& training = watched.messages.back();
  ASSERT_TRUE(IsTraining(training));
  ASSERT_THAT(CancelJob(owner, running.value.name()).status, IsOk());
  const Watched rest = WatchUntil(owner, running.value.name(), IsTerminal);
  ASSERT_FALSE(rest.messages.empty());
  EXPECT_TRUE(rest.messages.back().terminal());
  EXPECT_EQ(rest.messages.back().stage(), "cancelled");
  EXPECT_EQ(rest.messages.back().state(), v1::Job::CANCELLED);
}

}  // namespace
}  // namespace dpar::e2e
