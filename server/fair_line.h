#ifndef DPAR_SERVER_FAIR_LINE_H_
#define DPAR_SERVER_FAIR_LINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/mutex.h"

namespace dpar {

// Thread-safe. A line for heavy work: a few run at once, of one tenant at most half of them (but one), and tenants take
// turns, however many each has waiting.
class FairLine {
 public:
  FairLine(size_t at_once, size_t max_waiting) : at_once_(at_once), max_waiting_(max_waiting) {}

  class Turn;

 private:
  struct Tenant {
    size_t turns = 0;  // waiting or running
    size_t running = 0;
    int64_t last_start = 0;
  };

  [[nodiscard]] const Turn* Next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t at_once_;
  const size_t max_waiting_;
  Mutex mutex_;
  std::list<const Turn*> waiting_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t starts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Tenant> tenants_ ABSL_GUARDED_BY(mutex_);
};

// In the line, then at work, while it lives. The line outlives it.
class FairLine::Turn {
 public:
  Turn(FairLine& line, std::string tenant);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Waits for the turn. CANCELLED soon after `wanted` says no; UNAVAILABLE at once in a line that is too long.
  absl::Status Await(const std::function<bool()>& wanted);

 private:
  friend class FairLine;

  FairLine& line_;
  const std::string tenant_;
  bool runs_ = false;
};

}  // namespace dpar

#endif  // DPAR_SERVER_FAIR_LINE_H_
