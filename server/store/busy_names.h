#ifndef DPAR_SERVER_STORE_BUSY_NAMES_H_
#define DPAR_SERVER_STORE_BUSY_NAMES_H_

#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "server/store/database.h"

namespace dpar {

// UNAVAILABLE / SERVER_UNAVAILABLE.
absl::Status NameIsBusy();

// Names that one caller in this process works on at a time. Thread-safe. Outlives its holds.
class BusyNames {
 public:
  // Waits for the name. UNAVAILABLE / SERVER_UNAVAILABLE when it stays taken for `patience`.
  absl::StatusOr<std::unique_ptr<NameHold>> Take(const std::string& name, absl::Duration patience)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Hold;

  Mutex mutex_;
  std::set<std::string> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_BUSY_NAMES_H_
