#include "tests/crash/crash_site.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace dpar::crash {
namespace {

constexpr absl::Duration kSettleTimeout = absl::Minutes(3);
constexpr absl::Duration kHaltTimeout = absl::Seconds(60);
constexpr absl::Duration kPollPeriod = absl::Milliseconds(50);

std::vector<std::string> FlagsFor(const std::string& postgres_uri, std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--max-attempts", absl::StrCat(kMaxAttempts), "--concurrent-jobs", "2"});
  if (!postgres_uri.empty()) {
    flags.insert(flags.end(), {"--store", postgres_uri});
  }
  return flags;
}

}  // namespace

dpar::testing::PrivatePostgres* SharedPostgres() {
  static const std::unique_ptr<dpar::testing::PrivatePostgres> server =
      dpar::testing::PrivatePostgres::Start(kPostgresSettings);
  return server.get();
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value = otherwise;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

v1::CreateJobRequest QuickJob(const std::string& dataset, double epsilon) { return e2e::JobRequest(dataset, epsilon); }

v1::CreateJobRequest LongJob(const std::string& dataset) {
  v1::CreateJobRequest request = e2e::JobRequest(dataset, 0.1);
  request.mutable_spec()->mutable_options()->set_steps(100'000);
  return request;
}

CrashSite::CrashSite(dpar::testing::PrivatePostgres* postgres, std::vector<std::string> flags)
    : postgres_uri_(postgres == nullptr ? "" : postgres->NewDatabase()),
      server_(FlagsFor(postgres_uri_, std::move(flags))),
      checker_(server_.data_directory(), postgres_uri_, kMaxAttempts) {}

CrashSite::CrashSite(std::string uri, const std::string& server_uri, std::vector<std::string> flags)
    : postgres_uri_(std::move(uri)),
      server_(FlagsFor(server_uri, std::move(flags))),
      checker_(server_.data_directory(), postgres_uri_, kMaxAttempts) {}

bool CrashSite::Start(const std::string& binary, const e2e::Environment& environment) {
  if (!server_.Start(binary, environment)) {
    return false;
  }
  const MutexLock lock(&mutex_);
  channel_ = server_.MakeChannel();
  return true;
}

void CrashSite::Restart(const std::string& binary, const e2e::Environment& environment) {
  server_.Launch(binary, environment);
  if (server_.ComesUp()) {
    const MutexLock lock(&mutex_);
    channel_ = server_.MakeChannel();
  }
}

void CrashSite::AwaitHalt() {
  const absl::Time deadline = absl::Now() + kHaltTimeout;
  while (!server_.stopped()) {
    ASSERT_LT(absl::Now(), deadline) << "the server did not come to its seam";
    absl::SleepFor(absl::Milliseconds(5));
  }
}

CrashSite::Tenant CrashSite::NewTenant(uint64_t seed) {
  Tenant tenant;
  tenant.access = server_.NewTenant();
  tenant.dataset = AddDataset(tenant, seed);
  tenants_.push_back(tenant.access);
  return tenant;
}

std::string CrashSite::AddDataset(const Tenant& tenant, uint64_t seed) {
  std::string dataset = e2e::UploadGraph(ClientOf(tenant.access), tenant.access.name, e2e::MakeGraph(seed));
  promises_.Sealed(dataset);
  return dataset;
}

e2e::Client CrashSite::ClientOf(const e2e::TenantAccess& tenant) const {
  const MutexLock lock(&mutex_);
  return e2e::Client(channel_, tenant.owner_token);
}

std::string CrashSite::Submit(const Tenant& tenant, const v1::CreateJobRequest& request) {
  const auto answer =
      Persist(tenant.access, [&](const e2e::Client& client) { return e2e::CreateJob(client, request); });
  EXPECT_THAT(answer.status, e2e::IsOk());
  if (answer.status.ok()) {
    promises_.Accepted(answer.value.name());
  }
  return answer.value.name();
}

void CrashSite::Check(Rest rest, const std::string& when) {
  const std::vector<std::string> faults = checker_.Check(promises_.all(), rest);
  if (!faults.empty()) {
    ADD_FAILURE() << when << ":\n  " << absl::StrJoin(faults, "\n  ");
  }
}

void CrashSite::Settle(const std::string& when) {
  if (!server_.runs() && !Start()) {
    return;
  }
  const absl::Time deadline = absl::Now() + kSettleTimeout;
  for (const std::string& job : promises_.all().jobs) {
    for (const e2e::TenantAccess& tenant : tenants_) {
      if (job.rfind(absl::StrCat(tenant.name, "/"), 0) != 0) {
        continue;
      }
      v1::Job seen;
      while (!seen.has_end_time() && absl::Now() < deadline) {
        const auto answer = Persist(tenant, [&](const e2e::Client& client) { return e2e::GetJob(client, job); });
        EXPECT_THAT(answer.status, e2e::IsOk());
        seen = answer.value;
        if (!seen.has_end_time()) {
          absl::SleepFor(kPollPeriod);
        }
      }
      EXPECT_TRUE(seen.has_end_time()) << when << ": " << job << " does not end";
      promises_.Seen(seen);
    }
  }
  EXPECT_EQ(server_.Terminate(), std::optional<int>(0));
  Check(Rest::kSettled, absl::StrCat(when, ", settled"));
}

}  // namespace dpar::crash
