// What time makes useless is cleared away: uploads that were never finished, answers that nobody will ask for again.
#ifndef DPAR_SERVER_UPLOADS_JANITOR_H_
#define DPAR_SERVER_UPLOADS_JANITOR_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/limits.h"
#include "server/periodic.h"
#include "server/store/database.h"
#include "server/uploads/uploads.h"

namespace dpar {

// One thread that makes a round now and then. Several servers may do so on one store: what one has cleared away is not
// there for the others.
class Janitor {
 public:
  using Clock = std::function<absl::Time()>;
  static constexpr absl::Duration kPeriod = absl::Minutes(1);

  // Database and uploads outlive it.
  Janitor(Database& database, Uploads& uploads, const Limits& limits, Clock clock = absl::Now)
      : database_(database), uploads_(uploads), limits_(limits), clock_(std::move(clock)) {}
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  // Makes a round at once and then one every `period`, until it is destroyed.
  void Start(absl::Duration period = kPeriod);

  // One round: refuses uploads older than upload_life_days and forgets answers older than request_memory_days, the
  // latter in small transactions and at most 50,000 of them, so that nobody waits long for the store.
  absl::Status MakeRound();

 private:
  Database& database_;
  Uploads& uploads_;
  const Limits limits_;
  const Clock clock_;
  std::optional<Periodic> rounds_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_JANITOR_H_
