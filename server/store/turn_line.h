// Threads that wait for their turn at something that is done for many as well as for one: one leads and does it for a
// whole group, while the others wait for their answers.
#ifndef DPAR_SERVER_STORE_TURN_LINE_H_
#define DPAR_SERVER_STORE_TURN_LINE_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace dpar {

// What a line knows of somebody who waits in it. What is asked and answered is in the types derived from it.
struct Turn {
  std::vector<size_t> keys;  // no two of a group have one in common
  bool done = false;         // the line's own
  bool left = false;         // it waited for too long, and nobody has had it
};

template <typename T>
class TurnLine {
 public:
  using Group = std::vector<T*>;

  struct Options {
    size_t max_group = 1;     // how many go together at most
    size_t second_group = 0;  // how many must wait for a second group to be led at once; 0: there is never a second
    absl::Duration longest_wait = absl::InfiniteDuration();  // for a turn to come; then it leaves the line
    absl::Duration patience =
        absl::ZeroDuration();  // how long a leader of fewer than the group before had waits for more
  };
  explicit TurnLine(const Options& options) : options_(options) {}

  // Waits until somebody else has had this turn, or it left the line, and is empty then; or until this thread is to
  // lead: the group, in the order in which they came, its own turn first. Answer must follow, whatever happens.
  Group Join(T& turn) ABSL_LOCKS_EXCLUDED(mutex_) {
    Group group;
    group.reserve(options_.max_group);  // while nobody knows of the turn: what follows must not fail
    const absl::MutexLock lock(&mutex_);
    waiting_.push_back(&turn);
    const auto called = [this, &turn]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return turn.done || (MayLead() && waiting_.front() == &turn);
    };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&called), options_.longest_wait)) {
      const auto place = std::find(waiting_.begin(), waiting_.end(), &turn);
      if (place != waiting_.end()) {
        waiting_.erase(place);
        turn.left = true;
        return group;
      }
      // It is in a group.
      mutex_.Await(absl::Condition(&turn.done));
    }
    if (turn.done) {
      return group;
    }
    ++led_;
    // Those who were answered together often come again together.
    const auto are_as_many = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return waiting_.size() >= last_size_; };
    mutex_.AwaitWithTimeout(absl::Condition(&are_as_many), options_.patience);
    const auto joins = [&](T* other) { return group.size() < options_.max_group && Joins(*other, group); };
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), joins), waiting_.end());
    last_size_ = group.size();
    return group;
  }

  // Lets those go whose turns these were.
  void Answer(const Group& group) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    for (T* const turn : group) {
      turn->done = true;
    }
    --led_;
  }

 private:
  // Whoever asks waits still, so that the line is not empty unless a group is led in which he is.
  bool MayLead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return led_ == 0 || (led_ == 1 && options_.second_group > 0 && waiting_.size() >= options_.second_group);
  }
  // Adds it unless its keys say no.
  static bool Joins(T& turn, Group& group) {
    const auto clashes = [&turn](const T* other) {
      return std::find_first_of(turn.keys.begin(), turn.keys.end(), other->keys.begin(), other->keys.end()) !=
             turn.keys.end();
    };
    if (std::any_of(group.begin(), group.end(), clashes)) {
      return false;
    }
    group.push_back(&turn);
    return true;
  }

  const Options options_;
  absl::Mutex mutex_;
  std::deque<T*> waiting_ ABSL_GUARDED_BY(mutex_);
  int led_ ABSL_GUARDED_BY(mutex_) = 0;           // groups
  size_t last_size_ ABSL_GUARDED_BY(mutex_) = 0;  // of the group that was led last
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_TURN_LINE_H_
