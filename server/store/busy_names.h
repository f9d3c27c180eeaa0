// Names that one caller of this process at a time works on.
#ifndef DPAR_SERVER_STORE_BUSY_NAMES_H_
#define DPAR_SERVER_STORE_BUSY_NAMES_H_

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/store/database.h"

namespace dpar {

// UNAVAILABLE: somebody else works under this name.
absl::Status NameIsBusy();

// Thread-safe. Outlives the holds that it gives.
class BusyNames {
 public:
  // Waits for the name. UNAVAILABLE / SERVER_UNAVAILABLE when it stays taken.
  absl::StatusOr<std::unique_ptr<NameHold>> Take(const std::string& name, absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Hold;

  absl::Mutex mutex_;
  std::set<std::string> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_BUSY_NAMES_H_
