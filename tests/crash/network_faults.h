#ifndef DPAR_TESTS_CRASH_NETWORK_FAULTS_H_
#define DPAR_TESTS_CRASH_NETWORK_FAULTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/random/random.h"
#include "server/store/database.h"
#include "tests/crash/faulty_proxy.h"
#include "tests/end_to_end/harness.h"

namespace dpar::crash {

// Faults between the servers of a fleet and their PostgreSQL.
class NetworkFaults {
 public:
  struct Member {
    FaultyProxy& proxy;
    e2e::TestServer& server;
  };

  // `uri` leads to PostgreSQL itself.
  NetworkFaults(const std::string& uri, std::vector<Member> members);

  // One fault of a member drawn at random, for up to twice a lease of two seconds; then the network is whole for a
  // moment. Kinds take turns by `turn`.
  void Strike(RandomSource& random, size_t turn);
  [[nodiscard]] std::string Describe() const;

 private:
  void TerminateBackends();

  std::unique_ptr<Database> database_;
  const std::vector<Member> members_;
  std::map<std::string, int64_t> done_;
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_NETWORK_FAULTS_H_
