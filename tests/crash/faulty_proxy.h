// A TCP proxy before PostgreSQL, with the faults of a network.
#ifndef DPAR_TESTS_CRASH_FAULTY_PROXY_H_
#define DPAR_TESTS_CRASH_FAULTY_PROXY_H_

#include <atomic>
#include <list>
#include <string>
#include <thread>

namespace dpar::crash {

class FaultyProxy {
 public:
  enum class Mode {
    kPass,
    kStall,     // no byte moves, and no connection is accepted
    kSlow,      // a few bytes at a time
    kHalfOpen,  // PostgreSQL's ends are closed; callers are not told, and what they send is lost
  };

  // Listens on 127.0.0.1 and forwards to the PostgreSQL whose URI this is (of a local socket). UriOf makes the URI of
  // the same database behind the proxy.
  explicit FaultyProxy(const std::string& uri);
  ~FaultyProxy();
  FaultyProxy(const FaultyProxy&) = delete;
  FaultyProxy& operator=(const FaultyProxy&) = delete;

  [[nodiscard]] std::string UriOf(const std::string& uri) const;

  void SetMode(Mode mode) { mode_ = mode; }
  // Resets every connection.
  void Cut() { cut_ = true; }

 private:
  struct Pipe {
    int caller = -1;
    int server = -1;
    std::string to_caller;
    std::string to_server;
    bool broken = false;
  };

  void Loop();
  void Accept();
  void Move(Pipe& pipe, Mode mode);
  // Takes what there is from one end and gives what it can to the other.
  static bool Forward(int from, int to, std::string& waiting, size_t at_once);
  static void Reset(Pipe& pipe);

  const std::string socket_path_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<Mode> mode_ = Mode::kPass;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> stop_ = false;
  std::list<Pipe> pipes_;
  std::thread thread_;
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_FAULTY_PROXY_H_
