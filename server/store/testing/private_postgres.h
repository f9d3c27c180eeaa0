// A PostgreSQL server of the test's own: started from Debian's binaries in a temporary directory, reached by a socket
// there and by nothing else, gone with the object.
#ifndef DPAR_SERVER_STORE_TESTING_PRIVATE_POSTGRES_H_
#define DPAR_SERVER_STORE_TESTING_PRIVATE_POSTGRES_H_

#include <memory>
#include <string>

namespace dpar::testing {

class PrivatePostgres {
 public:
  // Null where PostgreSQL is not installed. Aborts the test program when it cannot be started. `settings` are added to
  // the server's command line, "-c name=value ...".
  static std::unique_ptr<PrivatePostgres> Start(const std::string& settings = "");
  ~PrivatePostgres();
  PrivatePostgres(const PrivatePostgres&) = delete;
  PrivatePostgres& operator=(const PrivatePostgres&) = delete;

  // The URI of a new, empty database.
  std::string NewDatabase();

  // From now on and until the next Restart, transactions commit and nobody is told: the server waits for a standby that
  // is not there.
  void WithholdAnswers();

  // Ends the server as a power cut would, or in order; and starts it again on the same files.
  void Kill();
  void Stop();
  void Restart();

 private:
  PrivatePostgres(std::string binaries, std::string settings);

  // Runs a program of PostgreSQL's as the user postgres when this is root, which PostgreSQL refuses to run as.
  [[nodiscard]] bool Run(const std::string& command) const;
  [[nodiscard]] std::string Control(const std::string& verb) const;
  void Launch();

  const std::string binaries_;
  const std::string settings_;
  std::string directory_;
  int databases_ = 0;
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_STORE_TESTING_PRIVATE_POSTGRES_H_
