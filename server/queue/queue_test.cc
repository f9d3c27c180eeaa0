#include "server/queue/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using ::dpar::testing::TemporaryStore;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr int64_t kManyJobs = 100;

std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

class QueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StoredDataset dataset;
    dataset.dataset.set_name("tenants/acme/datasets/d");
    dataset.dataset.set_is_public(true);
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", "k", kNow));
                  return InsertDataset(t, dataset, 10);
                }).ok());
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  // Queues tenants/acme/jobs/{id}, created `order` seconds after the first.
  absl::Status Add(const std::string& id, int order, int64_t max_queued = kManyJobs) {
    StoredJob stored;
    stored.job.set_name(absl::StrCat("tenants/acme/jobs/", id));
    stored.job.mutable_spec()->set_dataset("tenants/acme/datasets/d");
    stored.job.mutable_spec()->set_epsilon(0.1);
    stored.job.mutable_plan()->set_learning_rate(1.0 / 3.0);
    *stored.job.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(kNow + absl::Seconds(order)));
    return Write([&](Transaction& t) { return Enqueue(t, stored, max_queued); });
  }
  std::string LeaseNext() {
    std::string name;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const std::optional<StoredJob> job, Lease(t, kNow));
                  name = job.has_value() ? job->job.name() : "none";
                  return absl::OkStatus();
                }).ok());
    return name;
  }
  v1::Job Get(const std::string& id) {
    v1::Job job;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(t, absl::StrCat("tenants/acme/jobs/", id)));
                  job = stored.job;
                  return absl::OkStatus();
                }).ok());
    return job;
  }
  absl::Status Finish(const std::string& id, int attempt) {
    return Write([&](Transaction& t) {
      return Succeed(t, absl::StrCat("tenants/acme/jobs/", id), attempt, {"a", 1, "b", 2, "{}", std::nullopt}, kNow);
    });
  }

  TemporaryStore store_;
};

TEST_F(QueueTest, JobsAreLeasedOldestFirstAndOnce) {
  ASSERT_TRUE(Add("b", 2).ok());
  ASSERT_TRUE(Add("a", 1).ok());
  EXPECT_EQ(LeaseNext(), "tenants/acme/jobs/a");
  EXPECT_EQ(LeaseNext(), "tenants/acme/jobs/b");
  EXPECT_EQ(LeaseNext(), "none");
}

TEST_F(QueueTest, AJobComesBackAsItWasStored) {
  ASSERT_TRUE(Add("a", 1).ok());
  const v1::Job job = Get("a");
  EXPECT_EQ(job.state(), v1::Job::QUEUED);
  EXPECT_EQ(job.spec().epsilon(), 0.1);
  EXPECT_EQ(job.plan().learning_rate(), 1.0 / 3.0) << "doubles round-trip";
  EXPECT_EQ(job.attempts(), 0);
}

TEST_F(QueueTest, OneJobPastTheLimitIsRefusedWithTheLimit) {
  ASSERT_TRUE(Add("a", 1, 1).ok());
  const absl::Status over = Add("b", 2, 1);
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("limit"), "max_queued_jobs");
}

TEST_F(QueueTest, ACrashCountsTheAttemptAndACleanStopDoesNot) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  EXPECT_EQ(Get("a").attempts(), 1);
  ASSERT_TRUE(Write([](Transaction& t) { return Requeue(t, "tenants/acme/jobs/a", false); }).ok());
  EXPECT_EQ(Get("a").attempts(), 0);
  LeaseNext();
  ASSERT_TRUE(Write([](Transaction& t) { return Requeue(t, "tenants/acme/jobs/a", true); }).ok());
  LeaseNext();
  EXPECT_EQ(Get("a").attempts(), 2);
}

TEST_F(QueueTest, AnOldAttemptCannotFinish) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  ASSERT_TRUE(Write([](Transaction& t) { return Requeue(t, "tenants/acme/jobs/a", true); }).ok());
  LeaseNext();
  EXPECT_EQ(Finish("a", 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Get("a").state(), v1::Job::RUNNING);
  EXPECT_TRUE(Finish("a", 2).ok());
  EXPECT_EQ(Get("a").state(), v1::Job::SUCCEEDED);
}

TEST_F(QueueTest, AJobEndsOnce) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  ASSERT_TRUE(Finish("a", 1).ok());
  EXPECT_EQ(Finish("a", 1).code(), absl::StatusCode::kFailedPrecondition);
  const auto refused = [&](const std::function<absl::Status(Transaction&)>& body) { return Reason(Write(body)); };
  EXPECT_EQ(refused([](Transaction& t) { return End(t, "tenants/acme/jobs/a", v1::Job::FAILED, "x", kNow); }),
            "JOB_ENDED");
  EXPECT_EQ(refused([](Transaction& t) { return Requeue(t, "tenants/acme/jobs/a", true); }), "JOB_ENDED");
  EXPECT_EQ(refused([](Transaction& t) { return RequestCancel(t, "tenants/acme/jobs/a"); }), "JOB_ENDED");
}

TEST_F(QueueTest, OnlyASucceededJobHasOutput) {
  ASSERT_TRUE(Add("a", 1).ok());
  const auto output = [&] {
    return Write([](Transaction& t) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(const JobOutput found, GetOutput(t, "tenants/acme/jobs/a"));
      EXPECT_EQ(found.weights_sha256, "a");
      EXPECT_EQ(found.script_bytes, 2);
      EXPECT_EQ(found.envelope, "{}");
      return absl::OkStatus();
    });
  };
  EXPECT_EQ(Reason(output()), "JOB_NOT_SUCCEEDED");
  LeaseNext();
  ASSERT_TRUE(Finish("a", 1).ok());
  EXPECT_TRUE(output().ok());
}

TEST_F(QueueTest, AnEvaluationBelongsToTheJobOnceItSucceeded) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  JobOutput output = {"a", 1, "b", 2, "{}", v1::Evaluation()};
  output.evaluation->set_accuracy(1.0 / 3.0);
  output.evaluation->set_low(0.2);
  output.evaluation->set_high(0.5);
  output.evaluation->set_held_out_slots(40);
  EXPECT_FALSE(Get("a").has_evaluation());
  EXPECT_FALSE(Write([&](Transaction& t) { return Succeed(t, "tenants/acme/jobs/a", 2, output, kNow); }).ok());
  EXPECT_FALSE(Get("a").has_evaluation()) << "an attempt that is not the running one leaves nothing";
  ASSERT_TRUE(Write([&](Transaction& t) { return Succeed(t, "tenants/acme/jobs/a", 1, output, kNow); }).ok());
  EXPECT_EQ(Get("a").evaluation().SerializeAsString(), output.evaluation->SerializeAsString());
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const JobOutput found, GetOutput(t, "tenants/acme/jobs/a"));
                EXPECT_EQ(found.evaluation->held_out_slots(), 40);
                return absl::OkStatus();
              }).ok());
}

TEST_F(QueueTest, PagesAreNewestFirstAndJoinUp) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("j", i), i).ok());
  }
  std::vector<std::string> names;
  std::string token;
  do {
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const JobPage page, ListJobs(t, "tenants/acme", 2, token));
                  for (const v1::Job& job : page.jobs) {
                    names.push_back(job.name().substr(job.name().rfind('/') + 1));
                  }
                  token = page.next_page_token;
                  return absl::OkStatus();
                }).ok());
  } while (!token.empty());
  EXPECT_THAT(names, ::testing::ElementsAre("j4", "j3", "j2", "j1", "j0"));
}

TEST_F(QueueTest, AnUnknownJobIsNotFound) {
  EXPECT_EQ(Write([](Transaction& t) { return GetJob(t, "tenants/acme/jobs/x").status(); }).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar
