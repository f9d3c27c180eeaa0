// dpard's settings: flags, then the environment (DPARD_<NAME>), then a file of `key = value` lines, then defaults.
#ifndef DPAR_SERVER_CONFIG_H_
#define DPAR_SERVER_CONFIG_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/limits.h"

namespace dpar {

struct Config {
  enum class Command {
    kServe,
    kInit,
    kHealth,
    kCheck,
    kBackup,
    kRestore,
    kThaw,
    kAdoptWitness,
    kListKeys,
    kPrintKeys,
    kRotateKey,
    kRevokeKey
  };
  enum class Parts { kAll, kNoWorker, kWorkerOnly };

  Command command = Command::kServe;
  Parts parts = Parts::kAll;
  std::string key_id;      // of kRevokeKey
  std::string reason;      // of kRevokeKey, kThaw and kAdoptWitness
  std::string place;       // of kBackup and kRestore: where the backup is
  bool replace = false;    // of kRestore: also where there is something
  std::string population;  // of kThaw
  std::string data_dir = "./dpar-data";
  std::string store;  // postgresql://...; empty is the SQLite file of the data directory
  // Of the store's user, without a password in `store`; read from a file, since a URI is seen in lists of processes.
  std::string store_password;
  std::string witness_dir;                // empty is beside the data directory, see WitnessDirectory
  std::string address_file;               // empty is `address` in the data directory
  std::string listen = "127.0.0.1:7443";  // port 0 picks one
  // For both, port 0 picks one, and empty turns it off.
  std::string metrics_listen = "127.0.0.1:7480";
  std::string page_listen = "127.0.0.1:7481";
  std::string audit_log;  // empty is `audit.log` in the data directory
  std::string log_level = "info";
  std::string log_format = "text";
  std::string device = "auto";
  std::vector<std::string> tls_names;
  // The server's own certificate and key; empty is a certificate of the authority in the data directory.
  std::string tls_cert;
  std::string tls_key;
  std::string client_ca;  // authorities of client certificates; empty is that none are asked for
  // Of one address in a minute; the answers to further failures wait.
  int64_t auth_failures_per_minute = 10;
  int64_t concurrent_jobs = 0;  // 0 is half of the cores
  int64_t lease_seconds = 30;
  Limits limits;
};

// The directory of marks (server/witness); never inside the data directory.
std::string WitnessDirectory(const Config& config);

// HOST:PORT split; IPv6 hosts keep their brackets.
struct ListenAddress {
  std::string host;
  int port = 0;
};
absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& setting, const std::string& text);

struct Invocation {
  std::optional<std::string> print;  // set for --help and --version: print it and stop
  Config config;
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// `arguments` are without the program's name. INVALID_ARGUMENT / INVALID_FIELD names value, source and what is allowed.
absl::StatusOr<Invocation> ParseInvocation(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace dpar

#endif  // DPAR_SERVER_CONFIG_H_
