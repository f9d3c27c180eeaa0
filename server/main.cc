// dpard, the server. What is wired here, from the bottom up:
//
//   Config            flags, environment, file                          server/config.h
//   DirectoryLock     one dpard a data directory, where its store is    server/directory_lock.h
//   Database          SQLite below the data directory, or PostgreSQL    server/store/database.h
//   Initialise        certificates, signing key, first operator token   server/auth/initialise.h
//   SigningKeys       what certificates are signed with                 server/auth/signing_keys.h, key_commands.h
//   CheckEverything, MakeBackup, RestoreBackup, ThawPopulation,         server/upkeep/commands.h
//   AdoptWitness, ReportHealth: commands that end at once               server/services/health_probe.h
//   Witness           marks of what was spent, outside of the store     server/witness/witness.h
//   Uploads           files on their way in                             server/uploads/uploads.h
//   Janitor           clears away what has expired                      server/uploads/janitor.h
//   ProgressBoard     how far running jobs are                          server/worker/progress.h
//   Worker            threads that run queued jobs                      server/worker/worker.h
//   Metrics, AuditLog what is counted, and who did what                 server/observe/metrics.h, audit_log.h
//   Monitor           metrics and health over plain HTTP                server/observe/monitor.h
//   TlsIdentity       certificates, read again on SIGHUP                server/auth/tls_identity.h
//   Connections       how many are open, and which gives way            server/services/connections.h
//   Authenticator, Gate, StreamLimiter, StreamWatchdog                  server/auth, server/services
//   WatchHub          all watchers of jobs                              server/services/watch_hub.h
//   ThreadShortage    whether calls were refused for lack of a thread   server/services/thread_shortage.h
//   Listener          gRPC's server with every service of the API       server/services/listener.h
//   SpendLog, ChainChecker, Refusals, Overviews: what the page shows    server/page
//   PageServer        the page, over TLS                                server/page/page_server.h
//
// The main thread waits for SIGTERM or SIGINT and stops all in reverse order. SIGHUP reopens the audit log and reads
// TLS files again.
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/key_list.h"
#include "core/parallel.h"
#include "core/plan/method.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "core/train/device.h"
#include "server/auth/authenticator.h"
#include "server/auth/initialise.h"
#include "server/auth/key_commands.h"
#include "server/auth/signing_keys.h"
#include "server/auth/tls_identity.h"
#include "server/build.h"
#include "server/config.h"
#include "server/directory_lock.h"
#include "server/files.h"
#include "server/http/http_server.h"
#include "server/machine.h"
#include "server/observe/audit_log.h"
#include "server/observe/log.h"
#include "server/observe/metrics.h"
#include "server/observe/monitor.h"
#include "server/page/chain_checker.h"
#include "server/page/overview_service.h"
#include "server/page/overviews.h"
#include "server/page/page_server.h"
#include "server/page/refusals.h"
#include "server/page/spend_log.h"
#include "server/services/connections.h"
#include "server/services/gate.h"
#include "server/services/health_probe.h"
#include "server/services/listener.h"
#include "server/services/server_service.h"
#include "server/services/service_parts.h"
#include "server/services/stream_limiter.h"
#include "server/services/stream_watchdog.h"
#include "server/services/task_line.h"
#include "server/services/thread_shortage.h"
#include "server/services/watch_hub.h"
#include "server/signals.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/upkeep/commands.h"
#include "server/upkeep/restore.h"
#include "server/uploads/janitor.h"
#include "server/uploads/uploads.h"
#include "server/witness/witness.h"
#include "server/worker/progress.h"
#include "server/worker/worker.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr unsigned kAddressMode = 0644;
// Handlers of the page read the store, and one may wait for the accountant.
constexpr size_t kPageThreads = 8;

constexpr absl::Duration kInitialisePatience = absl::Minutes(1);

std::string AddressFile(const Config& config, const DataDirectory& directory) {
  return config.address_file.empty() ? directory.Address() : config.address_file;
}

// The file for the address of "metrics" or "page". In a fleet it lies beside the server's own address file.
std::string AddressFileOf(const std::string& what, const Config& config, const DataDirectory& directory) {
  return config.address_file.empty() ? absl::StrCat(directory.root(), "/", what, "-address")
                                     : absl::StrCat(config.address_file, ".", what);
}

std::string CertificateFile(const Config& config, const DataDirectory& directory) {
  return config.tls_cert.empty() ? directory.ServerCertificate() : config.tls_cert;
}

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

void PrintInitialised(const Config& config, const DataDirectory& directory, const MadeFiles& made) {
  if (made.empty()) {
    std::cout << "Already initialised; nothing was changed.\n";
  }
  if (config.tls_cert.empty()) {
    std::cout << "Certificate authority (give it to clients):  " << directory.CaCertificate() << "\n";
  }
  std::cout << "Server certificate:                          " << CertificateFile(config, directory) << "\n"
            << "Public signing key:                          " << directory.SigningPublicKey() << "\n"
            << "First operator token (keep it secret):       " << directory.OperatorToken() << "\n";
}

absl::StatusOr<TlsFiles> ReadTls(const Config& config, const DataDirectory& directory) {
  const std::string key_file = config.tls_key.empty() ? directory.ServerKey() : config.tls_key;
  return ReadTlsFiles({CertificateFile(config, directory), key_file, config.client_ca}, absl::Now());
}

v1::ServerInfo DescribeServer(const Limits& limits) {
  v1::ServerInfo info;
  info.set_version(DPAR_VERSION);
  info.set_build(BuildDescription());
  *info.mutable_limits() = ToProto(limits);
  for (const std::string& device : AvailableDevices()) {
    info.add_devices(device);
  }
  for (const MethodTraits& method : Methods()) {
    info.add_methods(method.name);
  }
  return info;
}

WorkerOptions WorkerOptionsOf(const Config& config, Metrics& metrics, Witness& witness) {
  const int cores = HardwareThreads();
  WorkerOptions options;
  options.max_attempts = static_cast<int>(config.limits.max_attempts);
  options.device = config.device;
  options.owner = absl::StrCat(HostName(), " ", getpid());
  options.concurrent_jobs =
      config.concurrent_jobs > 0 ? static_cast<int>(config.concurrent_jobs) : std::max(1, cores / 2);
  options.threads = std::max(1, cores / options.concurrent_jobs);
  options.max_running_jobs = config.limits.max_running_jobs;
  options.total_bytes = config.limits.max_job_bytes;
  options.lease = absl::Seconds(config.lease_seconds);
  options.metrics = &metrics;
  options.witness = &witness;
  return options;
}

// Listens at a setting, unless empty; writes and logs the address.
absl::Status StartAt(const std::string& setting, const std::string& listen, const std::string& file,
                     const std::string& what, const std::function<absl::StatusOr<int>(const ListenAddress&)>& start) {
  DPAR_RETURN_IF_ERROR(RemoveTree(file));
  if (listen.empty()) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const ListenAddress parsed, ParseListenAddress(setting, listen));
  DPAR_ASSIGN_OR_RETURN(const int port, start(parsed));
  const std::string address = absl::StrCat(parsed.host, ":", port);
  spdlog::info("{}{}", what, address);
  return WriteFileDurably(file, address, kAddressMode);
}

absl::Status StartMonitor(const Config& config, const std::string& address_file, Monitor& monitor) {
  return StartAt("metrics-listen", config.metrics_listen, address_file, "metrics and health are at http://",
                 [&](const ListenAddress& listen) {
                   if (listen.host != "localhost" && listen.host != "[::1]" && !absl::StartsWith(listen.host, "127.")) {
                     spdlog::warn("whoever reaches {} sees names of tenants and datasets and what they have spent",
                                  config.metrics_listen);
                   }
                   return monitor.Start(listen.host, listen.port);
                 });
}

// What the listener needs beside the parts of its services.
struct ListenerParts {
  const TlsFiles& tls;
  SigningKeys& keys;
  const Refusals& refusals;
  int slots;
  Monitor& monitor;
  ThreadShortage& shortage;
  Connections& connections;
  AuditLog& audit;
  std::atomic<bool>& stopping;
};

absl::Status Listen(const Config& config, const ServiceParts& parts, const ListenerParts& more,
                    const sigset_t& signals) {
  const DataDirectory& directory = parts.directory;
  SpendLog spend(parts.database);
  spend.Start();
  ChainChecker chains(parts.database);
  chains.Start();
  TlsIdentity tls(more.tls);
  Overviews overviews({parts.database, spend, chains, more.refusals, more.stopping},
                      {DPAR_VERSION, absl::Now(), more.slots, [&tls] { return tls.Expiry(); }});
  OverviewServiceImpl overview(parts, overviews);
  Listener listener(parts, DescribeServer(config.limits), more.keys, overview, more.shortage, more.connections);
  PageServer page(parts.gate, {listener.server_info(), overview, listener.budgets(), listener.training()});
  HttpServer page_http([&page](const HttpRequest& request) { return page.Answer(request); }, kPageThreads);
  const std::string page_address = AddressFileOf("page", config, directory);
  DPAR_RETURN_IF_ERROR(page_http.UseTls(more.tls.server.certificate, more.tls.server.key));
  DPAR_RETURN_IF_ERROR(StartAt("page-listen", config.page_listen, page_address, "the operator's page is at https://",
                               [&](const ListenAddress& listen) { return page_http.Start(listen.host, listen.port); }));
  const absl::Cleanup forget_page = [&] { RemoveTree(page_address).IgnoreError(); };
  DPAR_ASSIGN_OR_RETURN(const ListenAddress listen, ParseListenAddress("listen", config.listen));
  DPAR_ASSIGN_OR_RETURN(const int port,
                        listener.Start(listen.host, listen.port, config.limits.max_chunk_bytes + kMessageOverheadBytes,
                                       tls.MakeCredentials()));
  const std::string address = absl::StrCat(listen.host, ":", port);
  const std::string address_file = AddressFile(config, directory);
  const absl::Status announced = WriteFileDurably(address_file, address, kAddressMode);
  if (announced.ok()) {
    spdlog::info("dpard {} serves {} from {}", DPAR_VERSION, address, directory.root());
    more.monitor.Serve();
    const auto reload_tls = [&]() -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(TlsFiles files, ReadTls(config, directory));
      DPAR_RETURN_IF_ERROR(page_http.UseTls(files.server.certificate, files.server.key));
      tls.Replace(std::move(files));
      return absl::OkStatus();
    };
    AwaitStop(signals, {{"the audit log", [&more] { return more.audit.Reopen(); }}, {"TLS", reload_tls}});
  }
  more.monitor.Drain();
  listener.Drain();
  more.stopping = true;
  parts.hub.Stop();
  listener.Stop();
  DPAR_RETURN_IF_ERROR(announced);
  return RemoveTree(address_file);
}

// What readiness asks for beside the store.
std::vector<Monitor::Need> NeedsOf(Witness& witness, const DataDirectory& directory, const ThreadShortage& shortage) {
  return {
      {"witness", "1 while what is spent can be marked, 0 while it cannot.", [&witness] { return witness.Writes(); }},
      {"machine", "1 while there are descriptors, memory and disk to work with, 0 while there are not.",
       [&directory] { return CheckMachine(directory.root()).ok(); }},
      {"threads", "1 while there is a thread for every call, 0 when one was refused in the last seconds.",
       [&shortage] { return !shortage.Recent(); }}};
}

absl::Status Serve(const Config& config, const DataDirectory& directory, Database& database, const sigset_t& signals) {
  // Before a job runs that could not end with a bad key or certificate.
  SigningKeys keys(directory);
  DPAR_RETURN_IF_ERROR(keys.Current().status());
  TlsFiles tls;
  if (config.parts != Config::Parts::kWorkerOnly) {
    DPAR_ASSIGN_OR_RETURN(tls, ReadTls(config, directory));
  }
  Metrics metrics;
  Witness witness(database, WitnessDirectory(config), [&metrics] { metrics.WitnessFailed(); });
  // Before anything is admitted, run or shown.
  DPAR_RETURN_IF_ERROR(witness.Begin());
  Uploads uploads(database, directory, witness.marks(), config.limits);
  DPAR_RETURN_IF_ERROR(uploads.Sweep());
  Janitor janitor(database, uploads, config.limits);
  janitor.Start();
  ProgressBoard progress(
      [&metrics](const Progress& left, absl::Duration took) { metrics.StageEnded(left.stage, took); });
  const WorkerOptions worker_options = WorkerOptionsOf(config, metrics, witness);
  Worker worker(
      database, directory, [&keys] { return keys.Current(); }, progress, worker_options);
  const bool works = config.parts != Config::Parts::kNoWorker;
  database.Listen([&](const std::string& job) {
    progress.Touch(job);
    if (works) {
      worker.Notify(job);
    }
  });
  const absl::Cleanup stop_listening = [&database] { database.Listen(nullptr); };
  ThreadShortage shortage;
  Monitor monitor(database, metrics, NeedsOf(witness, directory, shortage));
  const std::string metrics_address = AddressFileOf("metrics", config, directory);
  DPAR_RETURN_IF_ERROR(StartMonitor(config, metrics_address, monitor));
  const absl::Cleanup forget_address = [&] { RemoveTree(metrics_address).IgnoreError(); };
  if (works) {
    DPAR_RETURN_IF_ERROR(worker.Start());
  }
  if (config.parts == Config::Parts::kWorkerOnly) {
    spdlog::info("dpard {} runs jobs from {}", DPAR_VERSION, directory.root());
    monitor.Serve();
    AwaitStop(signals, {});
    monitor.Drain();
    worker.Stop();
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<AuditLog> audit,
                        AuditLog::Open(config.audit_log.empty() ? directory.AuditLog() : config.audit_log));
  Authenticator authenticator(database, {.free_failures = config.auth_failures_per_minute});
  authenticator.Start();
  Connections connections({.total = std::min<size_t>(kMaxConnections, MaxDescriptors() / 2)});
  const Gate gate(authenticator, {&metrics, audit.get(), &connections});
  StreamLimiter streams("max_streams", config.limits.max_streams);
  StreamLimiter watches("max_watches", config.limits.max_watches);
  const absl::Duration max_idle = absl::Seconds(config.limits.max_idle_seconds);
  StreamWatchdog watchdog(max_idle);
  WatchHub hub(database, progress, witness, max_idle);
  hub.Start();
  TaskLine admissions(kMaxAdmissionsWaiting);
  std::atomic<bool> stopping = false;
  Refusals refusals;
  const auto note_refusal = [&refusals](const std::string& tenant, const std::string& dataset, const std::string& why) {
    refusals.Note(tenant, {dataset, absl::Now(), why});
  };
  const ServiceParts parts{database, directory, config.limits, gate, witness,    uploads,
                           streams,  watches,   watchdog,      hub,  admissions, worker_options.threads,
                           stopping, &metrics,  note_refusal};
  const absl::Cleanup stop_worker = [&worker] { worker.Stop(); };
  const int slots = works ? worker_options.concurrent_jobs : 0;
  return Listen(config, parts, {tls, keys, refusals, slots, monitor, shortage, connections, *audit, stopping}, signals);
}

absl::Status Run(const Config& config, const sigset_t& signals) {
  const DataDirectory directory(config.data_dir);
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(directory.Lock()));
  // Servers that share a PostgreSQL share the directory too.
  std::optional<DirectoryLock> lock;
  if (config.store.empty()) {
    DPAR_ASSIGN_OR_RETURN(DirectoryLock acquired, DirectoryLock::Acquire(directory.Lock()));
    lock.emplace(std::move(acquired));
  }
  DPAR_RETURN_IF_ERROR(CheckRestored(directory));
  if (config.parts != Config::Parts::kWorkerOnly) {
    // A crash may have left an old address file.
    DPAR_RETURN_IF_ERROR(RemoveTree(AddressFile(config, directory)));
  }
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenStore({directory, config.store}));
  DPAR_RETURN_IF_ERROR(Migrate(*database));
  // Checked again: a restore that began since looks for our sessions after it wrote its mark.
  DPAR_RETURN_IF_ERROR(CheckRestored(directory));
  MadeFiles made;
  {
    DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<NameHold> hold, database->Hold("initialise", kInitialisePatience));
    SecureRandom random;
    const auto tls_names = config.tls_cert.empty() ? std::optional(config.tls_names) : std::nullopt;
    DPAR_ASSIGN_OR_RETURN(made, Initialise(directory, *database, tls_names, absl::Now(), random));
  }
  if (config.command == Config::Command::kInit) {
    PrintInitialised(config, directory, made);
    return absl::OkStatus();
  }
  for (const std::string& path : made) {
    spdlog::info("made {}", path);
  }
  return Serve(config, directory, *database, signals);
}

std::string UserName() {
  const passwd* const user = getpwuid(geteuid());
  return user == nullptr ? absl::StrCat(geteuid()) : user->pw_name;
}

absl::StatusOr<std::optional<int>> ExitCode(const absl::StatusOr<int64_t>& faults) {
  DPAR_RETURN_IF_ERROR(faults.status());
  return *faults == 0 ? 0 : kExitFailed;
}

// The exit code of a command that ends at once, also beside a serving dpard; nothing for other commands.
absl::StatusOr<std::optional<int>> RunAside(const Config& config) {
  const DataDirectory directory(config.data_dir);
  const StorePlace place{directory, config.store};
  absl::Status done;
  switch (config.command) {
    case Config::Command::kCheck:
      return ExitCode(CheckEverything(place, WitnessDirectory(config), std::cout));
    case Config::Command::kRestore:
      return ExitCode(RestoreBackup(place, WitnessDirectory(config), config.place, config.replace, absl::Now(),
                                    std::cout, std::cerr));
    case Config::Command::kBackup:
      done = MakeBackup(place, config.place, absl::Now(), std::cout, std::cerr);
      break;
    case Config::Command::kThaw:
      done = ThawPopulation(place, WitnessDirectory(config), config.population, config.reason, UserName(), absl::Now(),
                            std::cout);
      break;
    case Config::Command::kAdoptWitness:
      done = AdoptWitness(place, WitnessDirectory(config), config.reason, UserName(), absl::Now(), std::cout);
      break;
    case Config::Command::kHealth:
      done = ReportHealth(AddressFile(config, directory), std::cout);
      break;
    case Config::Command::kListKeys:
      done = ListKeys(directory, std::cout);
      break;
    case Config::Command::kPrintKeys:
      done = PrintKeys(directory, std::cout);
      break;
    case Config::Command::kRotateKey:
      done = RotateKey(directory, absl::Now(), std::cout);
      break;
    case Config::Command::kRevokeKey:
      done = RevokeKey(directory, config.key_id, config.reason, absl::Now(), std::cout);
      break;
    default:
      return std::nullopt;
  }
  DPAR_RETURN_IF_ERROR(done);
  return 0;
}

std::optional<std::string> FromEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<Invocation> invocation = ParseInvocation(arguments, FromEnvironment);
  if (!invocation.ok()) {
    std::cerr << "dpard: " << invocation.status().message() << "\n";
    return kExitUsage;
  }
  if (invocation->print.has_value()) {
    std::cout << *invocation->print;
    return 0;
  }
  // libpq and PostgreSQL's tools read it from there.
  if (const std::string& password = invocation->config.store_password; !password.empty()) {
    setenv("PGPASSWORD", password.c_str(), /*overwrite=*/1);
  }
  // Files below the data directory are for their owner only.
  umask(S_IRWXG | S_IRWXO);
  // Before signals are blocked: Ctrl-C and SIGPIPE end a long check at once.
  const absl::StatusOr<std::optional<int>> aside = RunAside(invocation->config);
  if (!aside.ok()) {
    std::cerr << "dpard: " << aside.status().message() << "\n";
    return kExitFailed;
  }
  if (aside->has_value()) {
    return **aside;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = BlockSignals();
  SetUpLogging(invocation->config.log_level, invocation->config.log_format);
  if (const absl::Status status = Run(invocation->config, signals); !status.ok()) {
    std::cerr << "dpard: " << status.message() << "\n";
    return kExitFailed;
  }
  return 0;
}

}  // namespace
}  // namespace dpar

int main(int argc, char** argv) { return dpar::Main(std::vector<std::string>(argv + 1, argv + argc)); }
