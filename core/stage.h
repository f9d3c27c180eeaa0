// How far a stage of long work is. The work tells it at a pace (core/pace.h), and the answer says whether to go on.
#ifndef DPAR_CORE_STAGE_H_
#define DPAR_CORE_STAGE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "core/pace.h"

namespace dpar {

// Takes the part done, 0 to 1, and returns whether to go on. May be called from several threads at once.
using StageReport = std::function<bool(double fraction)>;

inline bool AlwaysGoOn(double /*fraction*/) { return true; }

// `whole` outlives the result.
inline StageReport PartOf(const StageReport& whole, double from, double to) {
  return [&whole, from, to](double fraction) { return whole(from + (to - from) * fraction); };
}

// Adds up what several threads have worked on. Safe from all of them; a no is final.
class StageMeter {
 public:
  // `total` entries are all the work. `report` outlives this object.
  StageMeter(int64_t total, const StageReport& report) : total_(std::max<int64_t>(total, 1)), report_(report) {}

  class Counter {
   public:
    explicit Counter(StageMeter& meter) : meter_(meter) {}
    ~Counter() { meter_.done_ += pending_; }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    // Call after a piece of work on so many entries, also if none. Reports after every kEntriesPerQuestion entries.
    // False once the answer was no.
    bool GoOn(int64_t entries) {
      pending_ += entries + 1;
      if (pending_ >= kEntriesPerQuestion) {
        meter_.Report(pending_);
        pending_ = 0;
      }
      return !meter_.stopped_;
    }

   private:
    StageMeter& meter_;
    int64_t pending_ = 0;
  };

  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  void Report(int64_t entries) {
    const int64_t done = done_ += entries;
    if (!stopped_ && !report_(std::min(1.0, static_cast<double>(done) / static_cast<double>(total_)))) {
      stopped_ = true;
    }
  }

  const int64_t total_;
  const StageReport& report_;
  std::atomic<int64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
};

}  // namespace dpar

#endif  // DPAR_CORE_STAGE_H_
