// Several clients at once, each a tenant of its own.
#ifndef DPAR_TESTS_CRASH_LOAD_H_
#define DPAR_TESTS_CRASH_LOAD_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/random/random.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/load_client.h"

namespace dpar::crash {

class Load {
 public:
  // Makes tenants on the running server and starts their clients.
  Load(CrashSite& site, RandomSource& random);
  ~Load() { Stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Lets the clients finish what they began, for which the server has to run, and joins them.
  void Stop();
  // What the clients did and what became of their jobs, once the site has settled.
  [[nodiscard]] std::string Describe() const;

 private:
  CrashSite& site_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_LOAD_H_
