#ifndef DPAR_SERVER_SERVICES_CONNECTIONS_H_
#define DPAR_SERVER_SERVICES_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <list>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "server/limits.h"

namespace dpar {

struct ConnectionLimits {
  size_t total = kMaxConnections;
  size_t of_address = kMaxConnectionsOfAddress;  // an IPv6 network of 64 bits is one address
};

// Thread-safe. The connections to the gRPC port, counted in total and by address. Where a limit is reached, a new one
// takes the place of the oldest on which no call with a token came; without such a one it is refused. So silent
// strangers keep nobody out.
class Connections {
 public:
  explicit Connections(const ConnectionLimits& limits = {}) : limits_(limits) {}

  // Counts a connection; false when it must be closed. `peer` is as gRPC has it.
  [[nodiscard]] bool Take(int socket, const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_);
  // A call with a token came from `peer`.
  void Prove(absl::string_view peer) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // gRPC owns the socket, and closes it unannounced: its inode tells whether the number is still the same socket.
  struct Open {
    int socket = -1;
    ino_t inode = 0;
    std::string peer;
    std::string address;
    bool proven = false;
  };
  using Place = std::list<Open>::iterator;

  [[nodiscard]] bool IsFull(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Place place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ConnectionLimits limits_;
  Mutex mutex_;
  std::list<Open> open_ ABSL_GUARDED_BY(mutex_);  // oldest first
  absl::flat_hash_map<int, Place> by_socket_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Place> by_peer_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, size_t> of_address_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_sweep_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // by the steady clock
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_CONNECTIONS_H_
