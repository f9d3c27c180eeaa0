// A machine that runs out of descriptors: nothing fails for good, and work goes on by itself.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/testing/http_client.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class ShortageTest : public SharedServerTest {
 protected:
  static void LimitDescriptors(rlim_t limit) {
    const rlimit limits = {limit, 4096};
    ASSERT_EQ(prlimit(server().pid(), RLIMIT_NOFILE, &limits, nullptr), 0);
  }
  static rlim_t OpenDescriptors() {
    const std::filesystem::directory_iterator open(absl::StrCat("/proc/", server().pid(), "/fd"));
    return static_cast<rlim_t>(std::distance(begin(open), end(open)));
  }
  static std::string Readiness() { return SendHttp({.address = server().metrics_address(), .path = "/readyz"}).body; }
};

TEST_F(ShortageTest, WithoutDescriptorsNoAttemptIsMadeAndWorkResumesByItself) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(980));
  LimitDescriptors(OpenDescriptors() + 8);
  std::vector<std::string> jobs;
  for (int i = 0; i < 10; ++i) {
    const auto job = CreateJob(owner, JobRequest(dataset, 0.1));
    ASSERT_THAT(job.status, IsOk());
    jobs.push_back(job.value.name());
  }
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (Readiness() != "machine\n" && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(Readiness(), "machine\n");
  absl::SleepFor(absl::Seconds(3));
  for (const std::string& job : jobs) {
    const v1::Job now = GetJob(owner, job).value;
    EXPECT_EQ(now.state(), v1::Job::QUEUED);
    EXPECT_EQ(now.attempts(), 0);
  }
  LimitDescriptors(4096);
  for (const std::string& job : jobs) EXPECT_EQ(WaitForJob(owner, job).state(), v1::Job::SUCCEEDED);
  while (Readiness() != "ok\n" && absl::Now() < deadline + absl::Minutes(1)) absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(Readiness(), "ok\n");
}

}  // namespace
}  // namespace dpar::e2e
