#ifndef DPAR_SERVER_SERVICES_ACCEPTOR_H_
#define DPAR_SERVER_SERVICES_ACCEPTOR_H_

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "server/services/connections.h"

namespace dpar {

// Listens, accepts and counts connections, and hands their sockets over. gRPC's own listener accepts without a limit.
class Acceptor {
 public:
  // Takes the ownership of `socket`, which `listener` accepted.
  using HandOver = std::function<void(int listener, int socket)>;

  // `connections` outlives it.
  explicit Acceptor(Connections& connections) : connections_(connections) {}
  ~Acceptor() { Stop(); }
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Binds every address of HOST:PORT (port 0 picks one); the port. UNAVAILABLE when it is taken.
  absl::StatusOr<int> Listen(const std::string& host, int port);
  // Begins to accept, on a thread of its own.
  void Start(HandOver hand_over);
  // No socket is handed over afterwards.
  void Stop();

 private:
  void Loop();
  void Accept(int listener);

  Connections& connections_;
  HandOver hand_over_;
  std::vector<int> listeners_;
  int stop_event_ = -1;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_ACCEPTOR_H_
