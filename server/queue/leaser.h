// Leases jobs for several threads of a server. Those that ask at the same time are served by one transaction.
#ifndef DPAR_SERVER_QUEUE_LEASER_H_
#define DPAR_SERVER_QUEUE_LEASER_H_

#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "server/queue/queue.h"
#include "server/store/database.h"
#include "server/store/turn_line.h"

namespace dpar {

class Leaser {
 public:
  // Both are called by one thread at a time: `request` for what can be leased now, whatever its max_jobs, and `leased`
  // with every job that was, before the next request and before Next returns it.
  Leaser(Database& database, std::function<LeaseRequest()> request, std::function<void(const StoredJob&)> leased);

  // A job for the caller; nothing when there is none for it now.
  absl::StatusOr<std::optional<StoredJob>> Next();

 private:
  struct LeaseTurn : Turn {
    absl::Status status;
    std::optional<StoredJob> job;
  };

  void LeaseFor(const std::vector<LeaseTurn*>& group);

  Database& database_;
  const std::function<LeaseRequest()> request_;
  const std::function<void(const StoredJob&)> leased_;
  TurnLine<LeaseTurn> turns_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_QUEUE_LEASER_H_
