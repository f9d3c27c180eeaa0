// When tokens were last used, to the minute, kept off the way of the calls that use them.
//
// A call only notes its token in memory. A thread writes what was noted since, all of it in one transaction, at most
// once a minute for each token. A store that cannot be written to at the time only delays it.
#ifndef DPAR_SERVER_AUTH_LAST_USE_H_
#define DPAR_SERVER_AUTH_LAST_USE_H_

#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/store/database.h"

namespace dpar {

// Thread-safe. The database outlives it.
class LastUseLog {
 public:
  explicit LastUseLog(Database& database) : database_(database) {}
  // Writes what is left.
  ~LastUseLog();
  LastUseLog(const LastUseLog&) = delete;
  LastUseLog& operator=(const LastUseLog&) = delete;

  // Starts the thread. Called once, or never in tests that call Flush.
  void Start();

  void Note(const std::string& token_id, absl::Time now);

  // Writes what was noted since the last time. What cannot be written is kept for the next.
  absl::Status Flush();

 private:
  using Uses = std::map<std::string, absl::Time>;

  void Run();

  Database& database_;
  absl::Mutex mutex_;
  Uses noted_ ABSL_GUARDED_BY(mutex_);    // every token of the latest minute, so that it is not noted again
  Uses pending_ ABSL_GUARDED_BY(mutex_);  // what is not written yet
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_LAST_USE_H_
