#ifndef DPAR_SERVER_PAGE_REFUSALS_H_
#define DPAR_SERVER_PAGE_REFUSALS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "server/page/newest.h"

namespace dpar {

// The newest jobs that this server refused, for each tenant; the store has no trace of them. Thread-safe. Memory is
// bounded by the limit on tenants; tenants do not evict each other's refusals.
class Refusals {
 public:
  struct Refusal {
    std::string dataset;
    absl::Time time;
    std::string why;  // as the caller was told
  };
  struct Summary {
    int64_t count = 0;
    std::vector<Refusal> newest;  // first, at most 20
  };

  void Note(const std::string& tenant, Refusal refusal) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of one tenant, or of all when it is empty. Counts as Newest does.
  [[nodiscard]] Summary Summarise(const std::string& tenant, absl::Time since) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, Newest<Refusal>> refusals_ ABSL_GUARDED_BY(mutex_);  // by tenant
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_REFUSALS_H_
