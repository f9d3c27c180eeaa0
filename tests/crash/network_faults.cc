#include "tests/crash/network_faults.h"

#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

namespace dpar::crash {
namespace {

constexpr uint64_t kLongestMilliseconds = 4'000;
constexpr absl::Duration kWhole = absl::Milliseconds(700);

}  // namespace

NetworkFaults::NetworkFaults(const std::string& uri, std::vector<Member> members) : members_(std::move(members)) {
  absl::StatusOr<std::unique_ptr<Database>> database = OpenPostgres(uri);
  EXPECT_TRUE(database.ok()) << database.status();
  database_ = *std::move(database);
}

void NetworkFaults::TerminateBackends() {
  // But this one, and those of the test's own.
  const absl::Status done = database_->Write([](Transaction& transaction) {
    return transaction
        .Execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
            "pg_backend_pid()",
            {})
        .status();
  });
  EXPECT_TRUE(done.ok()) << done;
}

void NetworkFaults::Strike(RandomSource& random, size_t turn) {
  const Member& member = members_[UniformBelow(random, members_.size())];
  const absl::Duration span = absl::Milliseconds(1 + UniformBelow(random, kLongestMilliseconds));
  const std::vector<std::pair<std::string, FaultyProxy::Mode>> modes = {{"stalls", FaultyProxy::Mode::kStall},
                                                                        {"crawls", FaultyProxy::Mode::kSlow},
                                                                        {"half open", FaultyProxy::Mode::kHalfOpen}};
  switch (const size_t kind = turn % 7) {
    case 0:
      member.proxy.Cut();
      ++done_["cuts"];
      break;
    case 1:
      TerminateBackends();
      ++done_["terminated"];
      break;
    case 2:
      member.server.Signal(SIGSTOP);
      absl::SleepFor(span);
      member.server.Signal(SIGCONT);
      ++done_["stopped servers"];
      break;
    case 3:
      // Cut off after a stall, when what was sent may have been carried out.
      member.proxy.SetMode(FaultyProxy::Mode::kStall);
      absl::SleepFor(span);
      member.proxy.Cut();
      member.proxy.SetMode(FaultyProxy::Mode::kPass);
      ++done_["stalls that end in a cut"];
      break;
    default:
      member.proxy.SetMode(modes[kind - 4].second);
      absl::SleepFor(span);
      member.proxy.SetMode(FaultyProxy::Mode::kPass);
      ++done_[modes[kind - 4].first];
  }
  absl::SleepFor(kWhole);
}

std::string NetworkFaults::Describe() const {
  return absl::StrJoin(done_, ", ", [](std::string* out, const std::pair<const std::string, int64_t>& one) {
    absl::StrAppend(out, one.second, " ", one.first);
  });
}

}  // namespace dpar::crash
