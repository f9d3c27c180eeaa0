// One client that keeps a server busy and never gives up: it submits, repeats, watches and cancels jobs, and uploads.
#ifndef DPAR_TESTS_CRASH_LOAD_CLIENT_H_
#define DPAR_TESTS_CRASH_LOAD_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <set>
#include <string>

#include "core/random/testing/fixed_random.h"
#include "tests/crash/crash_site.h"

namespace dpar::crash {

struct LoadTally {
  int64_t jobs = 0;
  int64_t refusals = 0;  // for an exhausted budget
  int64_t repeats = 0;   // requests that were sent again after their answer
  int64_t cancels = 0;
  int64_t watches = 0;
  int64_t uploads = 0;
};

// What it does follows from `seed`; what comes of it, from when the server dies. Anything that no client should see
// fails the test.
class LoadClient {
 public:
  LoadClient(CrashSite& site, CrashSite::Tenant tenant, double epsilon, uint64_t seed)
      : site_(site), tenant_(std::move(tenant)), epsilon_(epsilon), random_(seed) {}

  // Until `stop`; what was begun is finished.
  void Run(const std::atomic<bool>& stop);
  [[nodiscard]] const LoadTally& tally() const { return tally_; }

 private:
  void Submit();
  void Cancel();
  void Watch();
  void Upload();
  // Writes an upload's bytes from wherever the server has them.
  void Send(const std::string& upload, const std::string& bytes);
  // Forgets jobs that have ended.
  void Poll();
  [[nodiscard]] std::string AnyLiveJob();

  CrashSite& site_;
  const CrashSite::Tenant tenant_;
  const double epsilon_;
  dpar::testing::FixedRandom random_;
  std::set<std::string> live_;
  LoadTally tally_;
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_LOAD_CLIENT_H_
