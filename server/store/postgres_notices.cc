#include "server/store/postgres_notices.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// The listener asks for its wake-up at least that often, and waits that long before it connects again.
constexpr absl::Duration kListenPatience = absl::Seconds(60);
constexpr absl::Duration kReconnectWait = absl::Milliseconds(500);
// From one trip of the sender to the next: a notice that comes alone goes at once, and a busy server's go together.
// Each trip is a transaction of its own, and without a pause there was one for nearly every reservation.
constexpr absl::Duration kSendPeriod = absl::Milliseconds(10);
constexpr char kListen[] = "LISTEN dpar";
// One notice a line: names have no line breaks.
constexpr char kSend[] = "SELECT pg_notify('dpar', notice) FROM regexp_split_to_table($1, '\n') AS notice";

}  // namespace

NoticeListener::NoticeListener(std::string uri, Database::Listener listener)
    : uri_(std::move(uri)),
      listener_(std::move(listener)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      thread_([this] { Loop(); }) {}

NoticeListener::~NoticeListener() {
  stopping_ = true;
  eventfd_write(wake_, 1);
  thread_.join();
  close(wake_);
}

void NoticeListener::Loop() {
  while (!stopping_) {
    // A lost connection comes back after a while; what was said meanwhile was missed.
    Hear().IgnoreError();
    if (!stopping_) {
      absl::SleepFor(kReconnectWait);
    }
  }
}

absl::Status NoticeListener::Hear() {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<PostgresConnection> connection, PostgresConnection::Open(uri_));
  DPAR_RETURN_IF_ERROR(connection->Run(kListen, {}).status());
  listener_("");
  while (!stopping_) {
    DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> notices, connection->AwaitNotices(kListenPatience, wake_));
    for (const std::string& notice : notices) {
      listener_(notice);
    }
  }
  return absl::OkStatus();
}

NoticeSender::NoticeSender(std::string uri) : uri_(std::move(uri)), thread_([this] { Loop(); }) {}

NoticeSender::~NoticeSender() {
  {
    const absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void NoticeSender::Send(const std::vector<std::string>& notices) {
  if (notices.empty()) {
    return;
  }
  const absl::MutexLock lock(&mutex_);
  pending_.insert(notices.begin(), notices.end());
}

void NoticeSender::Loop() {
  while (true) {
    std::set<std::string> notices;
    {
      const absl::MutexLock lock(&mutex_);
      const auto has_work = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !pending_.empty(); };
      mutex_.Await(absl::Condition(&has_work));
      if (pending_.empty()) {
        return;
      }
      notices.swap(pending_);
    }
    if (!SendNow(notices).ok()) {
      connection_.reset();
    }
    const absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kSendPeriod);
  }
}

absl::Status NoticeSender::SendNow(const std::set<std::string>& notices) {
  if (connection_ == nullptr) {
    DPAR_ASSIGN_OR_RETURN(connection_, PostgresConnection::Open(uri_));
    // A notice is nothing that must outlive the machine.
    DPAR_RETURN_IF_ERROR(connection_->Run("SET synchronous_commit = off", {}).status());
  }
  return connection_->Run(kSend, {absl::StrJoin(notices, "\n")}).status();
}

}  // namespace dpar
