#include "server/config.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

constexpr char kConfigFlag[] = "config";
constexpr char kTlsNameFlag[] = "tls-name";
constexpr char kStorePasswordFlag[] = "store-password-file";
// Whatever is configured, a chunk and its message stay far below gRPC's own bound of 2^31 - 1 bytes.
constexpr int64_t kMaxChunkBytes = int64_t{64} << 20;
constexpr double kMaxCapEpsilon = 100;

// One thing that can be set. `name` is the flag without dashes and the key in the file.
struct Setting {
  std::string name;
  std::string type;
  std::string help;
  std::string shown_default;
  std::function<absl::Status(const std::string& value)> apply;
};

std::string EnvironmentName(const std::string& name) {
  return absl::StrCat("DPARD_", absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

Setting CountSetting(std::string name, std::string help, int64_t& target, int64_t low, int64_t high) {
  const auto apply = [name, low, high, &target](const std::string& text) -> absl::Status {
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) {
      return InvalidField(name, absl::StrCat("'", text, "' is not a whole number"));
    }
    DPAR_RETURN_IF_ERROR(ValidateRange(name, value, low, high));
    target = value;
    return absl::OkStatus();
  };
  return {std::move(name), "N", std::move(help), absl::StrCat(target), apply};
}

Setting TextSetting(std::string name, std::string type, std::string help, std::string& target,
                    std::function<absl::Status(const std::string&)> validate) {
  const auto apply = [&target, validate = std::move(validate)](const std::string& text) -> absl::Status {
    DPAR_RETURN_IF_ERROR(validate(text));
    target = text;
    return absl::OkStatus();
  };
  return {std::move(name), std::move(type), std::move(help), target, apply};
}

absl::Status ValidateDataDir(const std::string& text) {
  return text.empty() ? InvalidField("data-dir", "data-dir must not be empty") : absl::OkStatus();
}

absl::Status ValidateStore(const std::string& text) {
  const bool postgres = absl::StartsWith(text, "postgresql://") || absl::StartsWith(text, "postgres://");
  return postgres || text.empty()
             ? absl::OkStatus()
             : InvalidField("store", "store must be a URI that begins with postgresql://, or unset");
}

// A secret of one line, as editors and `openssl rand` leave it: the line's end is no part of it.
Setting StorePasswordSetting(std::string& target) {
  const auto apply = [&target](const std::string& path) -> absl::Status {
    std::ifstream file(path);
    std::string line;
    std::string more;
    if (!std::getline(file, line) || line.empty() || std::getline(file, more)) {
      return InvalidField(kStorePasswordFlag,
                          absl::StrCat(path, " cannot be read, or is not one line with the password"));
    }
    target = line;
    return absl::OkStatus();
  };
  return {kStorePasswordFlag, "FILE", "holds the password for --store in one line; for a URI without one", "", apply};
}

// A listening address that may be empty, which turns it off.
Setting OptionalListenSetting(const std::string& name, const std::string& help, std::string& target) {
  return TextSetting(name, "HOST:PORT", absl::StrCat(help, "; port 0 picks one, and an empty value turns it off"),
                     target, [name](const std::string& text) {
                       return text.empty() ? absl::OkStatus() : ParseListenAddress(name, text).status();
                     });
}

absl::Status ValidateDevice(const std::string& text) {
  absl::string_view index = text;
  int number = 0;
  const bool valid = text == "auto" || text == "cpu" || text == "cuda" ||
                     (absl::ConsumePrefix(&index, "cuda:") && absl::SimpleAtoi(index, &number) && number >= 0);
  return valid ? absl::OkStatus()
               : InvalidField("device", absl::StrCat("device must be auto, cpu, cuda or cuda:i, got '", text, "'"));
}

// 80% of the machine's memory.
int64_t DefaultJobBytes() {
  const auto bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max<int64_t>(1, static_cast<int64_t>(0.8 * bytes));
}

Setting CapSetting(double& target) {
  const auto apply = [&target](const std::string& text) -> absl::Status {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) {
      return InvalidField("default-cap-epsilon", absl::StrCat("'", text, "' is not a number"));
    }
    DPAR_RETURN_IF_ERROR(ValidatePositive("default-cap-epsilon", value));
    DPAR_RETURN_IF_ERROR(ValidateRange("default-cap-epsilon", value, 0, kMaxCapEpsilon));
    target = value;
    return absl::OkStatus();
  };
  return {"default-cap-epsilon", "E", "cap of a dataset whose owner declares none; owners may only go below it",
          absl::StrCat(target), apply};
}

Setting TlsNameSetting(std::vector<std::string>& target) {
  const auto apply = [&target](const std::string& text) -> absl::Status {
    std::vector<std::string> names;
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      const absl::string_view name = absl::StripAsciiWhitespace(part);
      DPAR_RETURN_IF_ERROR(ValidateTlsName("tls-name", name));
      names.emplace_back(name);
    }
    target = std::move(names);
    return absl::OkStatus();
  };
  return {kTlsNameFlag, "NAME",
          "names and addresses that clients reach the server by, separated by commas; read when the server "
          "certificate is made, besides localhost, 127.0.0.1 and ::1",
          "", apply};
}

std::vector<Setting> LimitSettings(Limits& limits) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMostIndex = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMostCount = 1'000'000;
  constexpr int64_t kMostDays = 3'650;
  return {
      CapSetting(limits.default_cap_epsilon),
      CountSetting("max-upload-bytes", "bytes of an uploaded file", limits.max_upload_bytes, 1, kMost),
      CountSetting("max-chunk-bytes", "bytes of data in one message of an upload", limits.max_chunk_bytes, 1,
                   kMaxChunkBytes),
      CountSetting("max-nodes", "node slots of a dataset", limits.max_nodes, 1, kMostIndex),
      CountSetting("max-features", "feature width of a dataset", limits.max_features, 1, kMostIndex),
      CountSetting("max-classes", "classes of a dataset", limits.max_classes, 2, kMostIndex),
      CountSetting("max-edges", "directed edge entries of a file", limits.max_edges, 1, kMost),
      CountSetting("max-feature-entries", "stored feature entries of a file", limits.max_feature_entries, 1, kMost),
      CountSetting("max-datasets", "datasets of a tenant", limits.max_datasets, 1, kMostCount),
      CountSetting("max-open-uploads", "open uploads of a tenant", limits.max_open_uploads, 1, kMostCount),
      CountSetting("max-queued-jobs", "jobs of a tenant that have not ended", limits.max_queued_jobs, 1, kMostCount),
      CountSetting("max-running-jobs", "jobs of a tenant that run at once, on all servers of a fleet together",
                   limits.max_running_jobs, 1, kMostCount),
      CountSetting("max-job-bytes",
                   "memory for the jobs of this server together; a job that is expected to need more is refused",
                   limits.max_job_bytes, 1, kMost),
      CountSetting("max-streams", "uploads and downloads of a tenant at once", limits.max_streams, 1, kMostCount),
      CountSetting("max-watches", "jobs that a tenant watches at once", limits.max_watches, 1, kMostCount),
      CountSetting("max-tokens", "live tokens of a tenant, and of the operators", limits.max_tokens, 1, kMostCount),
      CountSetting("max-tenants", "tenants", limits.max_tenants, 1, kMostCount),
      CountSetting("max-idle-seconds", "seconds that a stream's caller may send or take nothing",
                   limits.max_idle_seconds, 1, kMostCount),
      CountSetting("request-memory-days", "days for which the answer to a request id is remembered",
                   limits.request_memory_days, 1, kMostDays),
      CountSetting("upload-life-days", "days after which an upload that was not finished is refused",
                   limits.upload_life_days, 1, kMostDays),
      CountSetting("max-attempts", "starts of a job before an infrastructure failure ends it", limits.max_attempts, 1,
                   100),
  };
}

std::vector<Setting> Settings(Config& config) {
  std::vector<Setting> settings = {
      TextSetting("data-dir", "DIR", "where everything is kept", config.data_dir, ValidateDataDir),
      TextSetting("store", "URI",
                  "postgresql://... for servers that share one store and one data directory; unset, an SQLite file in "
                  "the data directory",
                  config.store, ValidateStore),
      StorePasswordSetting(config.store_password),
      TextSetting(
          "witness-dir", "DIR",
          "where marks of what was spent are kept, by which a store that was rolled back is found out; not in the "
          "data directory, and not in its backups. Servers that share a store share it. Unset, the data "
          "directory's name and `.witness`",
          config.witness_dir, [](const std::string&) { return absl::OkStatus(); }),
      TextSetting("address-file", "FILE",
                  "where the address that the server listens on is written; unset, `address` in the data directory",
                  config.address_file, [](const std::string&) { return absl::OkStatus(); }),
      CountSetting("worker-slots", "jobs that run at once on this server; 0 is half of its cores", config.worker_slots,
                   0, 1024),
      CountSetting("lease-seconds", "how long a job is left to a server that is not heard of, before another takes it",
                   config.lease_seconds, 1, 3600),
      TextSetting("listen", "HOST:PORT", "where calls are accepted; port 0 picks one", config.listen,
                  [](const std::string& text) { return ParseListenAddress("listen", text).status(); }),
      OptionalListenSetting("metrics-listen",
                            "where metrics and health are served over plain HTTP, to everybody who reaches it",
                            config.metrics_listen),
      OptionalListenSetting("page-listen", "where the operator's page is served over TLS", config.page_listen),
      TextSetting(
          "audit-log", "FILE",
          "where every call that changes something is written, one JSON object a line; unset, `audit.log` in the "
          "data directory",
          config.audit_log, [](const std::string&) { return absl::OkStatus(); }),
      TextSetting("log-level", "LEVEL", std::string(kLogLevels), config.log_level,
                  [](const std::string& text) { return ValidateLogLevel(text); }),
      TextSetting("log-format", "FORMAT", std::string(kLogFormats), config.log_format,
                  [](const std::string& text) { return ValidateLogFormat(text); }),
      TextSetting("device", "DEVICE", "where jobs run: auto, cpu, cuda or cuda:i", config.device, ValidateDevice),
      TlsNameSetting(config.tls_names),
      TextSetting("tls-cert", "FILE",
                  "the server's certificate in PEM, with its chain; unset, one is made under an authority of its own",
                  config.tls_cert, [](const std::string&) { return absl::OkStatus(); }),
      TextSetting("tls-key", "FILE", "the key of --tls-cert in PEM, without a passphrase", config.tls_key,
                  [](const std::string&) { return absl::OkStatus(); }),
      TextSetting("client-ca", "FILE",
                  "authorities in PEM: a client certificate of theirs with a URI stands for the token that has this "
                  "URI as certificate_uri",
                  config.client_ca, [](const std::string&) { return absl::OkStatus(); }),
      CountSetting("auth-failures-per-minute",
                   "calls without a valid token of one address in a minute that are answered at once; the answers to "
                   "more wait a second",
                   config.auth_failures_per_minute, 1, 1'000'000'000),
  };
  for (Setting& setting : LimitSettings(config.limits)) {
    settings.push_back(std::move(setting));
  }
  return settings;
}

// `key = value` lines; '#' starts a comment line.
absl::StatusOr<std::map<std::string, std::string>> ReadFile(const std::string& path,
                                                            const std::vector<Setting>& settings) {
  std::ifstream file(path);
  if (!file) {
    return InvalidField(kConfigFlag, absl::StrCat("cannot read the configuration file ", path));
  }
  std::map<std::string, std::string> values;
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
      return InvalidField(kConfigFlag, absl::StrCat(where, ": expected 'key = value'"));
    }
    if (std::none_of(settings.begin(), settings.end(), [&](const Setting& s) { return s.name == key; })) {
      return InvalidField(key, absl::StrCat(where, ": there is no setting '", key, "'; --help lists them"));
    }
    if (!values.emplace(key, absl::StripAsciiWhitespace(parts[1])).second) {
      return InvalidField(key, absl::StrCat(where, ": '", key, "' is set twice"));
    }
  }
  return values;
}

// What the flags say, before anything else is looked at.
struct Flags {
  std::optional<std::string> print;
  Config::Command command = Config::Command::kServe;
  Config::Parts parts = Config::Parts::kAll;
  std::string key_id;
  std::string reason;
  std::string place;
  bool replace = false;
  std::string dataset;
  std::map<std::string, std::string> values;
};

// Declares `keys` and the commands below it; what was parsed goes to `flags`.
void AddKeyCommands(CLI::App& app, Flags& flags) {
  CLI::App* keys = app.add_subcommand("keys", "the keys that certificates are signed with; also while a server runs");
  keys->require_subcommand(1);
  keys->fallthrough();
  const auto add = [&](const char* name, Config::Command command, const char* help) {
    CLI::App* added = keys->add_subcommand(name, help);
    added->fallthrough();
    added->callback([&flags, command] { flags.command = command; });
    return added;
  };
  add("list", Config::Command::kListKeys, "every key with when it was made, retired and revoked");
  add("print", Config::Command::kPrintKeys, "every public key in PEM, for those who verify certificates");
  add("rotate", Config::Command::kRotateKey, "make a new key and sign with it from now on");
  CLI::App* revoke = add("revoke", Config::Command::kRevokeKey,
                         "say that a key may have been in other hands; the one that signs now is replaced first");
  revoke->add_option("KEY_ID", flags.key_id, "the key's id, or 8 digits of it")->required();
  revoke->add_option("--reason", flags.reason, "why, in one line that everybody may read")->required();
}

// Declares the commands about the store as a whole.
void AddStoreCommands(CLI::App& app, Flags& flags) {
  const auto add = [&](const char* name, Config::Command command, const char* help) {
    CLI::App* added = app.add_subcommand(name, help);
    added->callback([&flags, command] { flags.command = command; });
    return added;
  };
  add("check", Config::Command::kCheck,
      "verify datasets, models, ledgers, keys and marks, say what was found, and stop; also while a server runs");
  CLI::App* backup = add("backup", Config::Command::kBackup,
                         "copy the store, keys, datasets and models to a new directory; also while servers run");
  backup->add_option("DEST", flags.place, "the directory, which must not exist")->required();
  CLI::App* restore =
      add("restore", Config::Command::kRestore,
          "verify a backup, put it back, verify its ledgers, and freeze budgets that have spent more since");
  restore->add_option("SRC", flags.place, "what `dpard backup` made")->required();
  restore->add_flag("--replace", flags.replace,
                    "also where there is something: files are moved to replaced-TIME, tables of PostgreSQL replaced");
  CLI::App* thaw = add("thaw", Config::Command::kThaw,
                       "debit what a frozen budget's ledger does not know of, and admit jobs again; also while servers "
                       "run");
  thaw->add_option("DATASET", flags.dataset, "tenants/TENANT/datasets/ID")->required();
  thaw->add_option("--reason", flags.reason, "why, in one line that the ledger keeps")->required();
  CLI::App* adopt = add("adopt-witness", Config::Command::kAdoptWitness,
                        "make an empty directory the store's witness directory, in the place of one that is lost");
  adopt->add_option("--reason", flags.reason, "why, in one line that the store keeps")->required();
}

absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments, const std::vector<Setting>& settings) {
  CLI::App app("dpard trains node classifiers on private graphs under node-level differential privacy.", "dpard");
  app.footer(
      "A flag goes before the environment variable named beside it, that before the file, that before the "
      "default.");
  app.set_version_flag("--version", absl::StrCat("dpard ", DPAR_VERSION));
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_subcommand("serve", "accept calls and run jobs (the default); makes what `init` makes when it is not there");
  bool no_worker = false;
  bool worker_only = false;
  app.add_flag("--no-worker", no_worker, "accept calls, and leave jobs to other servers of the store");
  app.add_flag("--worker-only", worker_only, "run jobs, and accept no calls");
  CLI::App* init =
      app.add_subcommand("init", "make certificates, signing key and the first operator token, say where, and stop");
  CLI::App* health = app.add_subcommand(
      "health", "ask the server of this configuration, on this machine, whether it serves; exit code 0 says yes");
  Flags flags;
  AddStoreCommands(app, flags);
  AddKeyCommands(app, flags);
  std::map<std::string, std::vector<std::string>> given;
  const auto add = [&](const std::string& name, const std::string& type, const std::string& help) {
    CLI::Option* option = app.add_option(absl::StrCat("--", name), given[name], help)->allow_extra_args(false);
    // Only names for the certificate may be given more than once.
    option->expected(1)->type_name(type);
    if (name == kTlsNameFlag) {
      option->expected(1, CLI::detail::expected_max_vector_size);
    }
  };
  add(kConfigFlag, "FILE", "file of `key = value` lines; a key is the name of a flag [env DPARD_CONFIG]");
  for (const Setting& setting : settings) {
    const std::string shown =
        setting.shown_default.empty() ? "" : absl::StrCat(" (default ", setting.shown_default, ")");
    add(setting.name, setting.type, absl::StrCat(setting.help, shown, " [env ", EnvironmentName(setting.name), "]"));
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    flags.print = app.help();
  } catch (const CLI::CallForVersion&) {
    flags.print = absl::StrCat("dpard ", DPAR_VERSION, "\n");
  } catch (const CLI::ParseError& error) {
    return InvalidField("command line", absl::StrCat(error.what(), "; --help lists what there is"));
  }
  if (init->parsed()) {
    flags.command = Config::Command::kInit;
  } else if (health->parsed()) {
    flags.command = Config::Command::kHealth;
  }
  if (no_worker && worker_only) {
    return InvalidField("command line", "--no-worker and --worker-only leave nothing to do; give one of them");
  }
  flags.parts = no_worker ? Config::Parts::kNoWorker : worker_only ? Config::Parts::kWorkerOnly : Config::Parts::kAll;
  for (const auto& [name, texts] : given) {
    if (!texts.empty()) {
      flags.values[name] = absl::StrJoin(texts, ",");
    }
  }
  return flags;
}

// A value and where it came from, for the reason when it is bad.
struct Source {
  std::string value;
  std::string where;
};

std::optional<Source> Find(const std::string& name, const Flags& flags, const Environment& environment,
                           const std::map<std::string, std::string>& file, const std::string& file_name) {
  if (const auto flag = flags.values.find(name); flag != flags.values.end()) {
    return Source{flag->second, absl::StrCat("--", name)};
  }
  if (const std::optional<std::string> value = environment(EnvironmentName(name)); value.has_value()) {
    return Source{*value, EnvironmentName(name)};
  }
  if (const auto line = file.find(name); line != file.end()) {
    return Source{line->second, absl::StrCat(file_name, ", ", name)};
  }
  return std::nullopt;
}

// A path as far as it is there, without links and without a slash at its end.
std::filesystem::path Resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path resolved =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return resolved.has_filename() ? resolved : resolved.parent_path();
}

// Whether a path is a directory or below it.
bool IsWithin(const std::string& path, const std::string& directory) {
  const std::filesystem::path inner = Resolved(path);
  const std::filesystem::path outer = Resolved(directory);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
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
  invocation.config.limits.max_job_bytes = DefaultJobBytes();
  const std::vector<Setting> settings = Settings(invocation.config);
  DPAR_ASSIGN_OR_RETURN(const Flags flags, ParseFlags(arguments, settings));
  invocation.print = flags.print;
  invocation.config.command = flags.command;
  invocation.config.parts = flags.parts;
  invocation.config.key_id = flags.key_id;
  invocation.config.reason = flags.reason;
  invocation.config.place = flags.place;
  invocation.config.replace = flags.replace;
  invocation.config.dataset = flags.dataset;
  if (invocation.print.has_value()) {
    return invocation;
  }
  std::map<std::string, std::string> file;
  const std::optional<Source> file_name = Find(kConfigFlag, flags, environment, {}, "");
  if (file_name.has_value()) {
    DPAR_ASSIGN_OR_RETURN(file, ReadFile(file_name->value, settings));
  }
  for (const Setting& setting : settings) {
    const std::optional<Source> source =
        Find(setting.name, flags, environment, file, file_name.has_value() ? file_name->value : "");
    if (!source.has_value()) {
      continue;
    }
    if (const absl::Status status = setting.apply(source->value); !status.ok()) {
      return InvalidField(setting.name, absl::StrCat(source->where, ": ", status.message()));
    }
  }
  if (invocation.config.tls_cert.empty() != invocation.config.tls_key.empty()) {
    return InvalidField("tls-cert", "tls-cert and tls-key are set together, or neither");
  }
  if (!invocation.config.store_password.empty() && invocation.config.store.empty()) {
    return InvalidField(kStorePasswordFlag, "store-password-file is the password for --store, which is not set");
  }
  if (IsWithin(WitnessDirectory(invocation.config), invocation.config.data_dir)) {
    return InvalidField(
        "witness-dir",
        "witness-dir must not be inside data-dir: whatever restores the one must not roll back the other");
  }
  return invocation;
}

}  // namespace dpar
