#include "server/observe/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "prometheus/text_serializer.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const Metrics& metrics) { return prometheus::TextSerializer().Serialize(metrics.Collect()); }

TEST(MetricsTest, SeriesOfFixedListsAreThereFromTheStart) {
  const Metrics metrics;
  const std::string text = Text(metrics);
  for (const char* line :
       {"dpar_build_info{version=\"" DPAR_VERSION "\"} 1\n", "dpar_auth_failures_total{reason=\"TOKEN_MISSING\"} 0\n",
        "dpar_auth_failures_total{reason=\"TOKEN_INVALID\"} 0\n", "dpar_audit_write_failures_total 0\n",
        "dpar_jobs_ended_total{state=\"succeeded\"} 0\n", "dpar_jobs_ended_total{state=\"failed\"} 0\n",
        "dpar_jobs_ended_total{state=\"cancelled\"} 0\n",
        "dpar_ledger_commit_seconds_count{transaction=\"reserve\"} 0\n",
        "dpar_ledger_commit_failures_total{transaction=\"release\"} 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(MetricsTest, CallsAreCountedByMethodAndCodeAndTimedByMethod) {
  Metrics metrics;
  metrics.CallBegan("S/A");
  metrics.CallBegan("S/A");
  metrics.CallBegan("S/B");
  metrics.CallEnded("S/A", "OK", absl::Milliseconds(20));
  metrics.CallEnded("S/B", "NOT_FOUND", absl::Seconds(2));
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr("dpar_rpc_in_flight{method=\"S/A\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_rpc_in_flight{method=\"S/B\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("dpar_rpc_requests_total{code=\"OK\",method=\"S/A\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_rpc_requests_total{code=\"NOT_FOUND\",method=\"S/B\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_rpc_seconds_bucket{method=\"S/A\",le=\"0.01\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("dpar_rpc_seconds_bucket{method=\"S/A\",le=\"0.025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_rpc_seconds_sum{method=\"S/B\"} 2\n"));
}

TEST(MetricsTest, OnlyEndsOfJobsAreCounted) {
  Metrics metrics;
  metrics.JobEnded(v1::Job::QUEUED);
  metrics.JobEnded(v1::Job::RUNNING);
  metrics.JobEnded(v1::Job::CANCELLED);
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr("dpar_jobs_ended_total{state=\"cancelled\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("queued")));
  EXPECT_THAT(text, Not(HasSubstr("running")));
}

TEST(MetricsTest, ALedgersCommitIsTimedItsFailureCountedAndARefusalIsNeither) {
  Metrics metrics;
  const auto run = [&](const absl::Status& status) {
    return TimeLedgerCommit(&metrics, LedgerCommit::kReserve, [&] { return status; });
  };
  const absl::Status refused =
      MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_BUDGET_EXHAUSTED, "the budget cannot pay");
  const absl::Status failed = MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, "no store");
  EXPECT_TRUE(run(absl::OkStatus()).ok());
  EXPECT_EQ(run(refused), refused);
  EXPECT_EQ(run(failed), failed);
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr("dpar_ledger_commit_seconds_count{transaction=\"reserve\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_ledger_commit_failures_total{transaction=\"reserve\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_ledger_commit_failures_total{transaction=\"cancel\"} 0\n"));
  EXPECT_EQ(TimeLedgerCommit(nullptr, LedgerCommit::kCancel, [&] { return refused; }), refused);
}

TEST(MetricsTest, StagesFailedCallersAndFailedAuditsAreSeen) {
  Metrics metrics;
  metrics.StageEnded("training", absl::Seconds(3));
  metrics.AuthenticationFailed("TOKEN_INVALID");
  metrics.AuditWriteFailed();
  const std::string text = Text(metrics);
  EXPECT_THAT(text, HasSubstr("dpar_job_stage_seconds_bucket{stage=\"training\",le=\"5\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_job_stage_seconds_sum{stage=\"training\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("dpar_auth_failures_total{reason=\"TOKEN_INVALID\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_audit_write_failures_total 1\n"));
}

}  // namespace
}  // namespace dpar
