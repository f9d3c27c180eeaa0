// Notices between processes that share a PostgreSQL. They can be lost and only shorten waits: waiters also poll.
#ifndef DPAR_SERVER_STORE_POSTGRES_NOTICES_H_
#define DPAR_SERVER_STORE_POSTGRES_NOTICES_H_

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "server/store/database.h"
#include "server/store/postgres_connection.h"

namespace dpar {

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
