#include "server/services/connections.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include "absl/algorithm/container.h"
#include "server/auth/failure_brake.h"
#include "server/steady_time.h"

namespace dpar {
namespace {

// A sweep asks the kernel about every connection.
constexpr absl::Duration kSweepPeriod = absl::Milliseconds(100);

ino_t InodeOf(int socket) {
  struct stat status = {};
  return fstat(socket, &status) == 0 ? status.st_ino : 0;
}

// Only if it is still the same socket: the duplicate cannot change between the question and the act.
void CutOff(int socket, ino_t inode) {
  const int duplicate = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) {
    return;
  }
  if (InodeOf(duplicate) == inode) {
    shutdown(duplicate, SHUT_RDWR);
  }
  close(duplicate);
}

}  // namespace

bool Connections::Take(int socket, const std::string& peer) {
  const std::string address = PeerAddress(peer);
  const ino_t inode = InodeOf(socket);
  const MutexLock lock(&mutex_);
  if (const auto old = by_socket_.find(socket); old != by_socket_.end()) {
    Forget(old->second);
  }
  if (const auto old = by_peer_.find(peer); old != by_peer_.end()) {
    Forget(old->second);
  }
  if (IsFull(address)) {
    Sweep();
  }
  if (IsFull(address) && !MakeRoom(address)) {
    return false;
  }
  const Place place = open_.insert(open_.end(), {socket, inode, peer, address});
  by_socket_[socket] = place;
  by_peer_[peer] = place;
  ++of_address_[address];
  return true;
}

void Connections::Prove(absl::string_view peer) {
  const MutexLock lock(&mutex_);
  if (const auto found = by_peer_.find(peer); found != by_peer_.end()) {
    found->second->proven = true;
  }
}

bool Connections::IsFull(const std::string& address) const {
  const auto found = of_address_.find(address);
  return open_.size() >= limits_.total || (found != of_address_.end() && found->second >= limits_.of_address);
}

void Connections::Sweep() {
  const absl::Time now = SteadyNow();
  if (now - last_sweep_ < kSweepPeriod) {
    return;
  }
  last_sweep_ = now;
  for (Place place = open_.begin(); place != open_.end();) {
    const Place next = std::next(place);
    if (InodeOf(place->socket) != place->inode) {
      Forget(place);
    }
    place = next;
  }
}

bool Connections::MakeRoom(const std::string& address) {
  const bool own = open_.size() < limits_.total;
  const Place oldest =
      absl::c_find_if(open_, [&](const Open& one) { return !one.proven && (!own || one.address == address); });
  if (oldest == open_.end()) {
    return false;
  }
  CutOff(oldest->socket, oldest->inode);
  Forget(oldest);
  return true;
}

void Connections::Forget(Place place) {
  by_socket_.erase(place->socket);
  by_peer_.erase(place->peer);
  if (--of_address_[place->address] == 0) {
    of_address_.erase(place->address);
  }
  open_.erase(place);
}

}  // namespace dpar
