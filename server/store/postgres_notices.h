// Notices between the processes that share a PostgreSQL. They make waiting shorter and nothing depends on them: one may
// be lost with a connection or a process, and whoever waits for one also looks for itself now and then.
#ifndef DPAR_SERVER_STORE_POSTGRES_NOTICES_H_
#define DPAR_SERVER_STORE_POSTGRES_NOTICES_H_

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
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

// A thread that sends notices of transactions that were committed. Not sent within them: PostgreSQL lets one
// transaction at a time commit with a notice, so that their commits would share no write to the disk.
class NoticeSender {
 public:
  explicit NoticeSender(std::string uri);
  NoticeSender(const NoticeSender&) = delete;
  NoticeSender& operator=(const NoticeSender&) = delete;
  // Sends what is left.
  ~NoticeSender();

  // Soon, and together with others of that moment; equal ones once.
  void Send(const std::vector<std::string>& notices) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop();
  absl::Status SendNow(const std::set<std::string>& notices);

  const std::string uri_;
  std::unique_ptr<PostgresConnection> connection_;  // of the thread; none before the first notice
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> pending_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_POSTGRES_NOTICES_H_
