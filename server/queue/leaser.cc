#include "server/queue/leaser.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// Jobs in one transaction. The first waits for the last.
constexpr size_t kMaxLeases = 64;

}  // namespace

Leaser::Leaser(Database& database, std::function<LeaseRequest()> request, std::function<void(const StoredJob&)> leased)
    : database_(database),
      request_(std::move(request)),
      leased_(std::move(leased)),
      turns_({.max_group = kMaxLeases}) {}

absl::StatusOr<std::optional<StoredJob>> Leaser::Next() {
  LeaseTurn turn;
  if (const std::vector<LeaseTurn*> group = turns_.Join(turn); !group.empty()) {
    const absl::Cleanup answer = [&] { turns_.Answer(group); };
    LeaseFor(group);
  }
  DPAR_RETURN_IF_ERROR(turn.status);
  return std::move(turn.job);
}

void Leaser::LeaseFor(const std::vector<LeaseTurn*>& group) {
  LeaseRequest request = request_();
  request.max_jobs = static_cast<int64_t>(group.size());
  std::vector<StoredJob> jobs;
  const absl::Status status = database_.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(jobs, Lease(transaction, request));
    return absl::OkStatus();
  });
  for (size_t i = 0; i < group.size(); ++i) {
    group[i]->status = status;
    if (status.ok() && i < jobs.size()) {
      leased_(jobs[i]);
      group[i]->job = std::move(jobs[i]);
    }
  }
}

}  // namespace dpar
