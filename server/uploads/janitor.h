// Clears away unfinished uploads and old answers.
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

// One thread. Several servers may run it on one store.
class Janitor {
 public:
  using Clock = std::function<absl::Time()>;
  static constexpr absl::Duration kPeriod = absl::Minutes(1);

  Janitor(Database& database, Uploads& uploads, const Limits& limits, Clock clock = absl::Now)
      : database_(database), uploads_(uploads), limits_(limits), clock_(std::move(clock)) {}
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  // A round at once, then one every `period`, until destroyed.
  void Start(absl::Duration period = kPeriod);

  // Refuses uploads older than upload_life_days and forgets answers older than request_memory_days: at most 50,000, in
  // small transactions, so that others wait little for the store.
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
