// How long work is stopped: after every so many entries (neighbours, features, weights) it asks whether to go on.
#ifndef DPAR_CORE_PACE_H_
#define DPAR_CORE_PACE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace dpar {

inline constexpr int64_t kEntriesPerQuestion = 1 << 16;  // a millisecond of work

// Asks in such a way that a no is final: stages stop half-way and leave unusable results, whatever the next answer.
// Safe from several threads; pass it on with std::ref.
class KeepGoing {
 public:
  explicit KeepGoing(std::function<bool()> ask) : ask_(std::move(ask)) {}

  bool operator()() {
    if (!stopped_ && !ask_()) {
      stopped_ = true;
    }
    return !stopped_;
  }

  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  const std::function<bool()> ask_;
  std::atomic<bool> stopped_ = false;
};

// Counts one thread's work.
class Pace {
 public:
  // `keep_going` outlives this object.
  explicit Pace(const std::function<bool()>& keep_going) : keep_going_(keep_going) {}

  // Call before a piece of work on so many entries, also if none. Asks the first time and after every
  // kEntriesPerQuestion entries. False once the answer was no.
  bool GoOn(int64_t entries) {
    if (left_ <= 0 && !stopped_) {
      stopped_ = !keep_going_();
      left_ = kEntriesPerQuestion;
    }
    left_ -= entries + 1;
    return !stopped_;
  }

 private:
  const std::function<bool()>& keep_going_;
  int64_t left_ = 0;
  bool stopped_ = false;
};

}  // namespace dpar

#endif  // DPAR_CORE_PACE_H_
