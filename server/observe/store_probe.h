#ifndef DPAR_SERVER_OBSERVE_STORE_PROBE_H_
#define DPAR_SERVER_OBSERVE_STORE_PROBE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "prometheus/metric_family.h"
#include "server/queue/queue.h"
#include "server/store/database.h"

namespace dpar {

// Thread-safe. The database outlives it. Only Refresh asks the store, so scrapes neither load it nor hang with it.
class StoreProbe {
 public:
  explicit StoreProbe(Database& database) : database_(database) {}

  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the last Refresh succeeded shortly before `now`: a store that hangs does not answer.
  [[nodiscard]] bool Answers(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // dpar_store_up and, while it is up, what waits.
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Answer {
    absl::Time time;
    QueueState queue;
    int64_t open_uploads = 0;
    int64_t frozen_budgets = 0;
  };

  [[nodiscard]] std::optional<Answer> Current(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  mutable Mutex mutex_;
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_STORE_PROBE_H_
