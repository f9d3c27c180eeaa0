// Names that one caller at a time works on.
#ifndef DPAR_SERVER_UPLOADS_BUSY_NAMES_H_
#define DPAR_SERVER_UPLOADS_BUSY_NAMES_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace dpar {

// Names that somebody is busy with. Thread-safe.
class BusyNames {
 public:
  // Holds a name until it is destroyed.
  class Hold {
   public:
    Hold(BusyNames& names, std::string name) : names_(names), name_(std::move(name)) {}
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    BusyNames& names_;
    const std::string name_;
  };

  // Waits for the name. UNAVAILABLE / SERVER_UNAVAILABLE when it stays taken.
  absl::StatusOr<std::unique_ptr<Hold>> Take(const std::string& name);

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  std::set<std::string> taken_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_BUSY_NAMES_H_
