#include "server/config.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/auth/tls.h"
#include "server/observe/log.h"

namespace dpar {
namespace {

using Command = Config::Command;
using Validate = std::function<absl::Status(const std::string& text)>;

constexpr char kStorePasswordFlag[] = "store-password-file";
// Whatever is configured, a chunk and its message stay far below gRPC's own bound of 2^31 - 1 bytes.
constexpr int64_t kMaxChunkBytes = int64_t{64} << 20;
constexpr double kMaxCapEpsilon = 100;

std::string EnvironmentName(const std::string& name) {
  return absl::StrCat("DPARD_", absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

// Settings from flags, environment and file. CLI11 reads and checks values; the order of sources is ours, since CLI11
// puts the file before the environment and takes no empty variable.
class Settings {
 public:
  explicit Settings(CLI::App& app) : app_(app) {}

  template <typename Target>
  CLI::Option* Add(const std::string& name, const std::string& type, const std::string& help, Target& target,
                   Validate validate = nullptr) {
    CLI::Option* const option =
        app_.add_option(absl::StrCat("--", name), target, absl::StrCat(help, " [env ", EnvironmentName(name), "]"));
    option->type_name(type)->capture_default_str()->allow_extra_args(false);
    if (validate != nullptr) {
      option->check([validate](const std::string& text) { return std::string(validate(text).message()); });
    }
    options_[name] = option;
    return option;
  }

  void AddCount(const std::string& name, const std::string& help, int64_t& target, int64_t low, int64_t high) {
    Add(name, "N", help, target, [=](const std::string& text) {
      int64_t value = 0;
      // CLI11 reads 010 as octal, so only the plain decimal form passes.
      return absl::SimpleAtoi(text, &value) && absl::StrCat(value) == text
                 ? ValidateRange(name, value, low, high)
                 : InvalidField(name, absl::StrCat("'", text, "' is not a whole number"));
    });
  }

  [[nodiscard]] const std::map<std::string, CLI::Option*>& options() const { return options_; }

  absl::Status Set(const std::string& name, const std::string& value, const std::string& where) const {
    CLI::Option* const option = options_.at(name);
    if (option->count() > 0) {
      return absl::OkStatus();
    }
    try {
      option->add_result(value);
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      return InvalidField(name, absl::StrCat(where, absl::StripPrefix(error.what(), absl::StrCat("--", name))));
    }
    return absl::OkStatus();
  }

 private:
  CLI::App& app_;
  std::map<std::string, CLI::Option*> options_;
};

absl::Status ValidateStore(const std::string& text) {
  const bool postgres = absl::StartsWith(text, "postgresql://") || absl::StartsWith(text, "postgres://");
  return postgres || text.empty()
             ? absl::OkStatus()
             : InvalidField("store", "store must be a URI that begins with postgresql://, or unset");
}

absl::StatusOr<std::string> ReadPassword(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::string more;
  if (!std::getline(file, line) || line.empty() || std::getline(file, more)) {
    return InvalidField(kStorePasswordFlag,
                        absl::StrCat(path, " cannot be read, or is not one line with the password"));
  }
  return line;
}

absl::Status ValidateDevice(const std::string& text) {
  absl::string_view index = text;
  int number = 0;
  const bool valid = text == "auto" || text == "cpu" || text == "cuda" ||
                     (absl::ConsumePrefix(&index, "cuda:") && absl::SimpleAtoi(index, &number) && number >= 0);
  return valid ? absl::OkStatus()
               : InvalidField("device", absl::StrCat("device must be auto, cpu, cuda or cuda:i, got '", text, "'"));
}

absl::Status ValidateCap(const std::string& text) {
  constexpr char kName[] = "default-cap-epsilon";
  double value = 0;
  if (!absl::SimpleAtod(text, &value)) {
    return InvalidField(kName, absl::StrCat("'", text, "' is not a number"));
  }
  DPAR_RETURN_IF_ERROR(ValidatePositive(kName, value));
  return ValidateRange(kName, value, 0, kMaxCapEpsilon);
}

int64_t DefaultJobBytes() {
  const auto bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max<int64_t>(1, static_cast<int64_t>(0.8 * bytes));
}

void AddLimits(Limits& limits, Settings& settings) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMostIndex = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMostCount = 1'000'000;
  constexpr int64_t kMostDays = 3'650;
  struct Row {
    const char* name;
    const char* help;
    int64_t& target;
    int64_t low;
    int64_t high;
  };
  settings.Add("default-cap-epsilon", "E", "cap of a population whose owner declares none; owners may only go below it",
               limits.default_cap_epsilon, ValidateCap);
  for (const Row& row : std::initializer_list<Row>{
           {"max-upload-bytes", "bytes of an uploaded file", limits.max_upload_bytes, 1, kMost},
           {"max-chunk-bytes", "bytes of data in one message of an upload", limits.max_chunk_bytes, 1, kMaxChunkBytes},
           {"max-nodes", "node slots of a dataset", limits.max_nodes, 1, kMostIndex},
           {"max-features", "feature width of a dataset", limits.max_features, 1, kMostIndex},
           {"max-classes", "classes of a dataset", limits.max_classes, 2, kMostIndex},
           {"max-edges", "directed edge entries of a file", limits.max_edges, 1, kMost},
           {"max-feature-entries", "stored feature entries of a file", limits.max_feature_entries, 1, kMost},
           {"max-datasets", "datasets of a tenant", limits.max_datasets, 1, kMostCount},
           {"max-open-uploads", "open uploads of a tenant", limits.max_open_uploads, 1, kMostCount},
           {"max-queued-jobs", "jobs of a tenant that have not ended", limits.max_queued_jobs, 1, kMostCount},
           {"max-running-jobs", "jobs of a tenant that run at once, on all servers of a fleet together",
            limits.max_running_jobs, 1, kMostCount},
           {"max-job-bytes",
            "memory for the jobs of this server together; a job that is expected to need more is refused",
            limits.max_job_bytes, 1, kMost},
           {"max-streams", "uploads and downloads of a tenant at once", limits.max_streams, 1, kMostCount},
           {"max-watches", "jobs that a tenant watches at once", limits.max_watches, 1, kMostCount},
           {"max-tokens", "live tokens of a tenant, and of the operators", limits.max_tokens, 1, kMostCount},
           {"max-tenants", "tenants", limits.max_tenants, 1, kMostCount},
           {"max-idle-seconds", "seconds that a stream's caller may send or take nothing", limits.max_idle_seconds, 1,
            kMostCount},
           {"request-memory-days", "days for which the answer to a request id is remembered",
            limits.request_memory_days, 1, kMostDays},
           {"upload-life-days", "days after which an upload that was not finished is refused", limits.upload_life_days,
            1, kMostDays},
           {"max-attempts", "starts of a job before an infrastructure failure ends it", limits.max_attempts, 1, 100}}) {
    settings.AddCount(row.name, row.help, row.target, row.low, row.high);
  }
}

void AddListening(Config& config, Settings& settings) {
  const auto optional = [&](const std::string& name, const std::string& help, std::string& target) {
    settings.Add(name, "HOST:PORT", absl::StrCat(help, "; port 0 picks one, and an empty value turns it off"), target,
                 [name](const std::string& text) {
                   return text.empty() ? absl::OkStatus() : ParseListenAddress(name, text).status();
                 });
  };
  settings.Add("listen", "HOST:PORT", "where calls are accepted; port 0 picks one", config.listen,
               [](const std::string& text) { return ParseListenAddress("listen", text).status(); });
  optional("metrics-listen", "where metrics and health are served over plain HTTP, to everybody who reaches it",
           config.metrics_listen);
  optional("page-listen", "where the operator's page is served over TLS", config.page_listen);
  settings.Add("address-file", "FILE",
               "where the address that the server listens on is written; unset, `address` in the data directory",
               config.address_file);
  settings
      .Add("tls-name", "NAME",
           "names and addresses that clients reach the server by, separated by commas; read when the server "
           "certificate is made, besides localhost, 127.0.0.1 and ::1",
           config.tls_names, [](const std::string& text) { return ValidateTlsName("tls-name", text); })
      ->delimiter(',')
      ->transform([](const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); });
  settings.Add("tls-cert", "FILE",
               "the server's certificate in PEM, with its chain; unset, one is made under an authority of its own",
               config.tls_cert);
  settings.Add("tls-key", "FILE", "the key of --tls-cert in PEM, without a passphrase", config.tls_key);
  settings.Add(
      "client-ca", "FILE",
      "authorities in PEM: a client certificate of theirs with a URI stands for the token that has this URI as "
      "certificate_uri",
      config.client_ca);
  settings.AddCount("auth-failures-per-minute",
                    "calls without a valid token of one address in a minute that are answered at once; the answers to "
                    "more wait a second",
                    config.auth_failures_per_minute, 1, 1'000'000'000);
}

void AddKeeping(Config& config, std::string& password_file, Settings& settings) {
  settings.Add("data-dir", "DIR", "where everything is kept", config.data_dir, [](const std::string& text) {
    return text.empty() ? InvalidField("data-dir", "data-dir must not be empty") : absl::OkStatus();
  });
  settings.Add("store", "URI",
               "postgresql://... for servers that share one store and one data directory; unset, an SQLite file in the "
               "data directory",
               config.store, ValidateStore);
  settings.Add(kStorePasswordFlag, "FILE", "holds the password for --store in one line; for a URI without one",
               password_file);
  settings.Add("witness-dir", "DIR",
               "where marks of what was spent are kept, by which a store that was rolled back is found out; not in the "
               "data directory, and not in its backups. Servers that share a store share it. Unset, the data "
               "directory's name and `.witness`",
               config.witness_dir);
  settings.Add("audit-log", "FILE",
               "where every call that changes something is written, one JSON object a line; unset, `audit.log` in the "
               "data directory",
               config.audit_log);
  settings.Add("log-level", "LEVEL", std::string(kLogLevels), config.log_level, ValidateLogLevel);
  settings.Add("log-format", "FORMAT", std::string(kLogFormats), config.log_format, ValidateLogFormat);
  settings.Add(
      "device", "DEVICE",
      "where jobs without noise or seed run: auto, cpu, cuda or cuda:i; others, all private ones too, run on the cpu",
      config.device, ValidateDevice);
  settings.AddCount("concurrent-jobs", "jobs that run at once on this server; 0 is half of its cores",
                    config.concurrent_jobs, 0, 1024);
  settings.AddCount("lease-seconds", "how long a job is left to a server that is not heard of, before another takes it",
                    config.lease_seconds, 1, 3600);
}

CLI::App* AddCommand(CLI::App& app, Config& config, Command command, const char* name, const char* help) {
  CLI::App* const added = app.add_subcommand(name, help);
  added->fallthrough();
  added->callback([&config, command] { config.command = command; });
  return added;
}

void AddKeyCommands(CLI::App& app, Config& config) {
  CLI::App* keys = app.add_subcommand("keys", "the keys that certificates are signed with; also while a server runs");
  keys->require_subcommand(1);
  keys->fallthrough();
  AddCommand(*keys, config, Command::kListKeys, "list", "every key with when it was made, retired and revoked");
  AddCommand(*keys, config, Command::kPrintKeys, "print", "every public key in PEM, for those who verify certificates");
  AddCommand(*keys, config, Command::kRotateKey, "rotate", "make a new key and sign with it from now on");
  CLI::App* revoke =
      AddCommand(*keys, config, Command::kRevokeKey, "revoke",
                 "say that a key may have been in other hands; the one that signs now is replaced first");
  revoke->add_option("KEY_ID", config.key_id, "the key's id, or 8 digits of it")->required();
  revoke->add_option("--reason", config.reason, "why, in one line that everybody may read")->required();
}

void AddCommands(CLI::App& app, Config& config) {
  AddCommand(app, config, Command::kServe, "serve",
             "accept calls and run jobs (the default); makes what `init` makes when it is not there");
  AddCommand(app, config, Command::kInit, "init",
             "make certificates, signing key and the first operator token, say where, and stop");
  AddCommand(app, config, Command::kHealth, "health",
             "ask the server of this configuration, on this machine, whether it serves; exit code 0 says yes");
  AddCommand(
      app, config, Command::kCheck, "check",
      "verify datasets, models, ledgers, keys and marks, say what was found, and stop; also while a server runs");
  AddCommand(app, config, Command::kBackup, "backup",
             "copy the store, keys, datasets and models to a new directory; also while servers run")
      ->add_option("DEST", config.place, "the directory, which must not exist")
      ->required();
  CLI::App* restore =
      AddCommand(app, config, Command::kRestore, "restore",
                 "verify a backup, put it back, verify its ledgers, and freeze populations that have spent more since");
  restore->add_option("SRC", config.place, "what `dpard backup` made")->required();
  restore->add_flag("--replace", config.replace,
                    "also where there is something: files are moved to replaced-TIME, tables of PostgreSQL replaced");
  CLI::App* thaw =
      AddCommand(app, config, Command::kThaw, "thaw",
                 "debit what a frozen population's ledger does not know of, and admit jobs again; also while "
                 "servers run");
  thaw->add_option("POPULATION", config.population, "tenants/TENANT/populations/ID")->required();
  thaw->add_option("--reason", config.reason, "why, in one line that the ledger keeps")->required();
  AddCommand(app, config, Command::kAdoptWitness, "adopt-witness",
             "make an empty directory the store's witness directory, in the place of one that is lost")
      ->add_option("--reason", config.reason, "why, in one line that the store keeps")
      ->required();
  AddKeyCommands(app, config);
}

// Reads the flags; returns the text to print for --help and --version.
absl::StatusOr<std::optional<std::string>> ParseFlags(const std::vector<std::string>& arguments, CLI::App& app) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion&) {
    return absl::StrCat("dpard ", DPAR_VERSION, "\n");
  } catch (const CLI::ValidationError& error) {
    const absl::string_view what = error.what();
    return InvalidField(absl::StripPrefix(what.substr(0, what.find(':')), "--"), what);
  } catch (const CLI::ParseError& error) {
    return InvalidField("command line", absl::StrCat(error.what(), "; --help lists what there is"));
  }
  return std::nullopt;
}

// Reads `key = value` lines; '#' starts a comment. CLI11 takes [::1]:7443 for an array, cuts at '#' and names no line.
absl::Status ReadFile(const std::string& path, const Settings& settings) {
  std::ifstream file(path);
  if (!file) {
    return InvalidField("config", absl::StrCat("cannot read the configuration file ", path));
  }
  std::set<std::string> seen;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || absl::StartsWith(text, "#")) {
      continue;
    }
    const std::vector<absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    const std::string key(absl::StripAsciiWhitespace(parts[0]));
    const std::string where = absl::StrCat(path, " line ", number);
    if (parts.size() != 2) {
      return InvalidField("config", absl::StrCat(where, ": expected 'key = value'"));
    }
    if (!settings.options().contains(key)) {
      return InvalidField(key, absl::StrCat(where, ": there is no setting '", key, "'; --help lists them"));
    }
    if (!seen.insert(key).second) {
      return InvalidField(key, absl::StrCat(where, ": '", key, "' is set twice"));
    }
    const std::string value(absl::StripAsciiWhitespace(parts[1]));
    DPAR_RETURN_IF_ERROR(settings.Set(key, value, absl::StrCat(where, ", ", key)));
  }
  return absl::OkStatus();
}

// Resolves links as far as the path exists; no trailing slash.
std::filesystem::path Resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path resolved =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return resolved.has_filename() ? resolved : resolved.parent_path();
}

bool IsWithin(const std::string& path, const std::string& directory) {
  const std::filesystem::path inner = Resolved(path);
  const std::filesystem::path outer = Resolved(directory);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

absl::Status ValidateTogether(const Config& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return InvalidField("tls-cert", "tls-cert and tls-key are set together, or neither");
  }
  if (!config.store_password.empty() && config.store.empty()) {
    return InvalidField(kStorePasswordFlag, "store-password-file is the password for --store, which is not set");
  }
  if (IsWithin(WitnessDirectory(config), config.data_dir)) {
    return InvalidField(
        "witness-dir",
        "witness-dir must not be inside data-dir: whatever restores the one must not roll back the other");
  }
  return absl::OkStatus();
}

}  // namespace

std::string WitnessDirectory(const Config& config) {
  if (!config.witness_dir.empty()) {
    return config.witness_dir;
  }
  absl::string_view directory = config.data_dir;
  while (directory.size() > 1 && absl::ConsumeSuffix(&directory, "/")) {
  }
  return absl::StrCat(directory, ".witness");
}

absl::StatusOr<ListenAddress> ParseListenAddress(const std::string& setting, const std::string& text) {
  const absl::Status bad = InvalidField(
      setting,
      absl::StrCat(setting, " must be HOST:PORT with a port from 0 to 65535, IPv6 as [::1]:PORT, got '", text, "'"));
  const size_t colon = text.rfind(':');
  ListenAddress address;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 0 || address.port > 65535) {
    return bad;
  }
  address.host = text.substr(0, colon);
  absl::string_view name = address.host;
  if (absl::ConsumePrefix(&name, "[") != absl::ConsumeSuffix(&name, "]") ||
      (name.size() == address.host.size() && absl::StrContains(name, ":")) || !ValidateTlsName(setting, name).ok()) {
    return bad;
  }
  return address;
}

absl::StatusOr<Invocation> ParseInvocation(const std::vector<std::string>& arguments, const Environment& environment) {
  Invocation invocation;
  Config& config = invocation.config;
  config.limits.max_job_bytes = DefaultJobBytes();
  // What reading a graph takes for each entry of its file, as core/graph/read_memory_test.cc measures it.
  constexpr int64_t kCheckedEntryBytes = 12;
  // One graph is checked at a time. Its edges and its features may each take half of what jobs may.
  const int64_t entries = config.limits.max_job_bytes / (2 * kCheckedEntryBytes);
  config.limits.max_feature_entries = std::min(config.limits.max_feature_entries, entries);
  config.limits.max_edges = std::min(config.limits.max_edges, entries);
  CLI::App app("dpard trains node classifiers on private graphs under node-level differential privacy.", "dpard");
  app.footer(
      "A flag goes before the environment variable named beside it, that before the file, that before the "
      "default.");
  app.set_version_flag("--version", absl::StrCat("dpard ", DPAR_VERSION));
  app.fallthrough();
  app.require_subcommand(0, 1);
  AddCommands(app, config);
  bool no_worker = false;
  bool worker_only = false;
  app.add_flag("--no-worker", no_worker, "accept calls, and leave jobs to other servers of the store");
  app.add_flag("--worker-only", worker_only, "run jobs, and accept no calls");
  std::string file = environment("DPARD_CONFIG").value_or("");
  app.add_option("--config", file, "file of `key = value` lines; a key is the name of a flag [env DPARD_CONFIG]")
      ->type_name("FILE");
  std::string password_file;
  Settings settings(app);
  AddKeeping(config, password_file, settings);
  AddListening(config, settings);
  AddLimits(config.limits, settings);
  DPAR_ASSIGN_OR_RETURN(invocation.print, ParseFlags(arguments, app));
  if (invocation.print.has_value()) {
    return invocation;
  }
  if (no_worker && worker_only) {
    return InvalidField("command line", "--no-worker and --worker-only leave nothing to do; give one of them");
  }
  config.parts = no_worker ? Config::Parts::kNoWorker : worker_only ? Config::Parts::kWorkerOnly : Config::Parts::kAll;
  for (const auto& [name, option] : settings.options()) {
    if (const std::optional<std::string> value = environment(EnvironmentName(name)); value.has_value()) {
      DPAR_RETURN_IF_ERROR(settings.Set(name, *value, EnvironmentName(name)));
    }
  }
  if (!file.empty()) {
    DPAR_RETURN_IF_ERROR(ReadFile(file, settings));
  }
  if (!password_file.empty()) {
    DPAR_ASSIGN_OR_RETURN(config.store_password, ReadPassword(password_file));
  }
  DPAR_RETURN_IF_ERROR(ValidateTogether(config));
  return invocation;
}

}  // namespace dpar
