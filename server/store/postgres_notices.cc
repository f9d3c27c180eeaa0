#include "server/store/postgres_notices.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "absl/time/clock.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// Upper bound of one wait, and the pause before reconnecting.
constexpr absl::Duration kListenPatience = absl::Seconds(60);
constexpr absl::Duration kReconnectWait = absl::Milliseconds(500);
constexpr char kListen[] = "LISTEN dpar";

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
    // Reconnects after a while; notices sent meanwhile were missed.
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

}  // namespace dpar
