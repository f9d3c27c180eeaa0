// When tokens were last used, to the minute. Calls only note their token in memory; a thread writes the notes in one
// transaction, at most once a minute for each token. A store that fails only delays the write.
#ifndef DPAR_SERVER_AUTH_LAST_USE_H_
#define DPAR_SERVER_AUTH_LAST_USE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "server/periodic.h"
#include "server/store/database.h"

namespace dpar {

// Thread-safe. The database outlives it.
class LastUseLog {
 public:
  explicit LastUseLog(Database& database) : database_(database) {}
  ~LastUseLog();
  LastUseLog(const LastUseLog&) = delete;
  LastUseLog& operator=(const LastUseLog&) = delete;

  // Called once, or never in tests that call Flush.
  void Start();

  void Note(const std::string& token_id, absl::Time now);

  // Writes the notes; those that cannot be written are kept for the next time.
  absl::Status Flush();

 private:
  using Uses = std::map<std::string, absl::Time>;

  Database& database_;
  Mutex mutex_;
  Uses noted_ ABSL_GUARDED_BY(mutex_);    // every token of the latest minute, so that it is not noted again
  Uses pending_ ABSL_GUARDED_BY(mutex_);  // what is not written yet
  std::unique_ptr<Periodic> writing_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_LAST_USE_H_
