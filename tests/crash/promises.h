// What clients were told, and so what no crash may take back.
#ifndef DPAR_TESTS_CRASH_PROMISES_H_
#define DPAR_TESTS_CRASH_PROMISES_H_

#include <map>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"
#include "dpar/v1/training.pb.h"

namespace dpar::crash {

struct Promised {
  std::set<std::string> jobs;                   // CreateJob answered with them
  std::map<std::string, v1::Job::State> ended;  // of those, seen to have ended, and how
  std::set<std::string> cancels;                // jobs whose cancel was asked for, whatever came of it
  std::set<std::string> datasets;               // FinishUpload answered with them
};

// Safe to use from many threads.
class Promises {
 public:
  void Accepted(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    promised_.jobs.insert(job);
  }
  void Seen(const v1::Job& job) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    if (job.has_end_time()) {
      promised_.ended.emplace(job.name(), job.state());
    }
  }
  // Before it is sent: the server may carry it out and die before it answers.
  void AsksToCancel(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    promised_.cancels.insert(job);
  }
  void Sealed(const std::string& dataset) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    promised_.datasets.insert(dataset);
  }
  [[nodiscard]] Promised all() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    return promised_;
  }

 private:
  mutable Mutex mutex_;
  Promised promised_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_PROMISES_H_
