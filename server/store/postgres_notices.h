// Notices between the processes that share a PostgreSQL. They make waiting shorter and nothing depends on them: one may
// be lost with a connection or a process, and whoever waits for one also looks for itself now and then.
#ifndef DPAR_SERVER_STORE_POSTGRES_NOTICES_H_
#define DPAR_SERVER_STORE_POSTGRES_NOTICES_H_

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "server/store/database.h"
#include "server/store/postgres_connection.h"

namespace dpar {

// A thread that hears notices, until this is destroyed.
class NoticeListener {
 public:
  NoticeListener(std::string uri, Database::Listener listener);
  NoticeListener(const NoticeListener&) = delete;
  NoticeListener& operator=(const NoticeListener&) = delete;
  ~NoticeListener();

 private:
  void Loop();
  absl::Status Hear();

  const std::string uri_;
  const Database::Listener listener_;
  const int wake_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_POSTGRES_NOTICES_H_
