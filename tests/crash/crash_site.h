// A server that is made to crash, its store, and what its clients were promised.
#ifndef DPAR_TESTS_CRASH_CRASH_SITE_H_
#define DPAR_TESTS_CRASH_CRASH_SITE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"
#include "server/store/testing/private_postgres.h"
#include "tests/crash/promises.h"
#include "tests/crash/store_checker.h"
#include "tests/end_to_end/harness.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::crash {

inline constexpr int kMaxAttempts = 3;

// Longer than any call of these tests takes that meets a server, and than a server is away.
inline constexpr absl::Duration kPatience = absl::Seconds(90);

class CrashSite {
 public:
  // On SQLite, or on a new database of `postgres`.
  explicit CrashSite(dpar::testing::PrivatePostgres* postgres, std::vector<std::string> flags = {});
  // On the database of `uri`, which the server reaches by `server_uri`.
  CrashSite(std::string uri, const std::string& server_uri, std::vector<std::string> flags);

  // The server. Start and Kill are for one thread; everything about clients is for any.
  bool Start(const std::string& binary = "dpard", const e2e::Environment& environment = {});
  // The same for a server that may die before it listens.
  void Restart(const std::string& binary, const e2e::Environment& environment);
  // Waits until the server, started with DPAR_TEST_HALT, stands still at its seam. SIGCONT lets it go on.
  void AwaitHalt();
  [[nodiscard]] e2e::TestServer& server() { return server_; }
  // Empty on SQLite.
  [[nodiscard]] const std::string& postgres_uri() const { return postgres_uri_; }

  // A tenant with one small dataset, which differs from every other by `seed`.
  struct Tenant {
    e2e::TenantAccess access;
    std::string dataset;
  };
  Tenant NewTenant(uint64_t seed);
  // Another dataset of the tenant, in a population of its own.
  std::string AddDataset(const Tenant& tenant, uint64_t seed);

  // A client of the server that was started last.
  [[nodiscard]] e2e::Client ClientOf(const e2e::TenantAccess& tenant) const ABSL_LOCKS_EXCLUDED(mutex_);
  Promises& promises() { return promises_; }

  // Calls until the answer is not UNAVAILABLE, as any client should, or patience is at its end.
  template <typename Call>
  auto Persist(const e2e::TenantAccess& tenant, const Call& call) const {
    const absl::Time deadline = absl::Now() + kPatience;
    while (true) {
      auto answer = call(ClientOf(tenant));
      if (answer.status.error_code() != grpc::StatusCode::UNAVAILABLE || absl::Now() > deadline) {
        return answer;
      }
      absl::SleepFor(absl::Milliseconds(20));
    }
  }

  // Submits a job, and asks again while the server is away; its name, or empty and a test failure.
  std::string Submit(const Tenant& tenant, const v1::CreateJobRequest& request);

  // Fails the test for every fault of the store as it lies there. `when` says after what.
  void Check(Rest rest, const std::string& when);
  // Lets every job come to its end under a plain dpard, which is started unless it runs, stops it in order, and checks.
  void Settle(const std::string& when);
  [[nodiscard]] const Snapshot& snapshot() const { return checker_.snapshot(); }

 private:
  const std::string postgres_uri_;
  e2e::TestServer server_;
  StoreChecker checker_;
  Promises promises_;
  std::vector<e2e::TenantAccess> tenants_;
  mutable Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
};

// A job of some milliseconds, and one of so many seconds that a test can act while it runs.
v1::CreateJobRequest QuickJob(const std::string& dataset, double epsilon = 0.1);
v1::CreateJobRequest LongJob(const std::string& dataset);

// For a private PostgreSQL that is killed: what a process has written survives it without a sync, and the start after a
// crash does not sync every file first.
inline constexpr char kPostgresSettings[] = "-c fsync=off";

// A number from the environment.
int64_t FromEnvironment(const char* name, int64_t otherwise);

// The one that the tests of a program share; null where none is installed.
dpar::testing::PrivatePostgres* SharedPostgres();

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_CRASH_SITE_H_
