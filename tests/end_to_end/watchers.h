// Many watchers of jobs at once, without a thread for each.
#ifndef DPAR_TESTS_END_TO_END_WATCHERS_H_
#define DPAR_TESTS_END_TO_END_WATCHERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "tests/end_to_end/harness.h"

namespace dpar::e2e {

// Every one that was opened has ended before this is gone.
class Watchers {
 public:
  // What all of them together have seen.
  struct Totals {
    int64_t opened = 0;
    int64_t heard = 0;     // have a message
    int64_t terminal = 0;  // have the last one
    int64_t ended = 0;
    std::vector<grpc::Status> statuses;  // of those that ended
  };

  Watchers();
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  ~Watchers();

  // Opens one more stream over the client's channel.
  void Open(const Client& client, const std::string& job);
  // Cancels all, as callers that go away do.
  void CancelAll();
  // Whether the totals come to be as asked within a minute and a half.
  [[nodiscard]] bool Await(const std::function<bool(const Totals&)>& reached) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] Totals totals() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Stream;

  mutable Mutex mutex_;
  Totals totals_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_WATCHERS_H_
