// How long work is stopped: it asks, after every so many entries, whether to go on. Entries are what a loop goes over,
// be it neighbours, feature entries or weights.
#ifndef DPAR_CORE_PACE_H_
#define DPAR_CORE_PACE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace dpar {

// Between two questions: a millisecond of work, so that asking costs nothing and an answer is never far.
inline constexpr int64_t kEntriesPerQuestion = 1 << 16;

// The question, in a form in which a no is final: stages stop half-way and leave what must not be used, whatever the
// next answer would have been. Safe from several threads; pass it on with std::ref.
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

// Counts one thread's work and asks when it is time.
class Pace {
 public:
  // `keep_going` outlives this object.
  explicit Pace(const std::function<bool()>& keep_going) : keep_going_(keep_going) {}

  // Before a piece of work on so many entries, a row for instance; a piece without any counts as well. Asks the first
  // time, and then whenever kEntriesPerQuestion entries were worked on since the last question. False once the answer
  // was no.
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
