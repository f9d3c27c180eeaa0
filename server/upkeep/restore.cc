#include "server/upkeep/restore.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/atomic_file.h"
#include "core/status_macros.h"
#include "server/directory_lock.h"
#include "server/files.h"
#include "server/steady_time.h"
#include "server/store/read_from.h"
#include "server/store/store_copy.h"
#include "server/upkeep/copy_file.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr char kReplacedPrefix[] = "replaced-";
// A restore gathers its files in kStaging; kRestoring is an empty file that exists while it replaces what was there.
constexpr char kStaging[] = "restoring.files";
constexpr char kRestoring[] = "restoring";
constexpr char kScript[] = "store.sql";
constexpr unsigned kPrivate = 0600;
constexpr char kUntouched[] = "; nothing was restored, and what was there before is as it was";
constexpr char kCutOff[] = "; part of what was there may have been replaced, so run `dpard restore --replace` again";
constexpr absl::Duration kSessionPatience = absl::Seconds(5);
constexpr absl::Duration kSessionPause = absl::Milliseconds(100);

absl::StatusOr<Manifest> Verify(const std::string& source, std::ostream& progress) {
  std::error_code error;
  const std::string file = absl::StrCat(source, "/", kManifestFile);
  if (!fs::exists(file, error)) {
    return absl::NotFoundError(absl::StrCat("there is no ", file, ", so ", source,
                                            " is no backup that `dpard backup` "
                                            "finished"));
  }
  DPAR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file));
  DPAR_ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(text));
  CopyMeter meter("verify", manifest.total_bytes(), progress);
  for (const BackedUpFile& expected : manifest.files) {
    const absl::StatusOr<BackedUpFile> found = DescribeFile(absl::StrCat(source, "/", expected.path), expected.path);
    if (!found.ok() || *found != expected) {
      return absl::DataLossError(absl::StrCat("the backup is damaged: ", expected.path,
                                              found.ok() ? " is not what was backed up" : " cannot be read",
                                              "; nothing was restored. Use another backup"));
    }
    meter.Add(expected.bytes);
  }
  return manifest;
}

std::vector<fs::path> Listed(const std::string& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    found.push_back(entry->path());
  }
  return found;
}

// All but the lock, files of restores and files of file systems.
std::vector<fs::path> Contents(const DataDirectory& directory) {
  std::vector<fs::path> found = Listed(directory.root());
  std::erase_if(found, [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name == "lock" || name == "lost+found" || absl::StartsWith(name, kRestoring) ||
           absl::StartsWith(name, kReplacedPrefix);
  });
  // SQLite's log is moved after the store: a store without its log would look whole but be older.
  std::stable_partition(found.begin(), found.end(), [](const fs::path& path) {
    return !absl::EndsWith(path.string(), "-wal") && !absl::EndsWith(path.string(), "-shm");
  });
  return found;
}

// A backup inside the data directory would be moved aside with it.
absl::Status CheckApart(const DataDirectory& directory, const std::string& source) {
  std::error_code error;
  const fs::path root = fs::weakly_canonical(directory.root(), error);
  const fs::path backup = fs::weakly_canonical(source, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot look at ", source, ": ", error.message()));
  }
  const fs::path relative = backup.lexically_relative(root);
  if (!relative.empty() && *relative.begin() != "..") {
    return absl::FailedPreconditionError(absl::StrCat(source, " lies in the data directory ", directory.root(),
                                                      "; nothing was restored. Move the backup elsewhere first"));
  }
  return absl::OkStatus();
}

absl::Status Rename(const std::string& from, const std::string& to) {
  return rename(from.c_str(), to.c_str()) == 0
             ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat("cannot move ", from, " to ", to, ": ", std::strerror(errno)));
}

absl::Status MoveAside(const std::vector<fs::path>& contents, const std::string& aside) {
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(aside + "/x"));
  for (const fs::path& path : contents) {
    DPAR_RETURN_IF_ERROR(Rename(path, fs::path(aside) / path.filename()));
  }
  return SyncDirectory(aside);
}

absl::Status InUse(absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is not empty; nothing was restored. Restore to an empty place, or say --replace"));
}

}  // namespace

// The sessions of a server that just ended take a moment to go.
absl::Status AwaitNoSessions(Database& database) {
  const absl::Time deadline = SteadyNow() + kSessionPatience;
  while (true) {
    DPAR_ASSIGN_OR_RETURN(const int64_t sessions,
                          ReadFrom(database, [](Transaction& transaction) { return PostgresSessions(transaction); }));
    if (sessions == 0) {
      return absl::OkStatus();
    }
    if (SteadyNow() >= deadline) {
      return absl::FailedPreconditionError(
          absl::StrCat(sessions, " other sessions use the database; stop every dpard of the fleet first"));
    }
    absl::SleepFor(kSessionPause);
  }
}

namespace {

absl::Status CheckPostgres(const std::string& uri, bool replace) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenPostgres(uri));
  DPAR_RETURN_IF_ERROR(AwaitNoSessions(*database));
  using Tables = std::vector<std::string>;
  DPAR_ASSIGN_OR_RETURN(const Tables tables,
                        ReadFrom(*database, [](Transaction& transaction) { return PostgresTables(transaction); }));
  return tables.empty() || replace ? absl::OkStatus() : InUse("the database");
}

absl::StatusOr<std::vector<fs::path>> FindContents(const StorePlace& place, bool replace) {
  if (!place.postgres_uri.empty()) {
    DPAR_RETURN_IF_ERROR(CheckPostgres(place.postgres_uri, replace));
  }
  std::vector<fs::path> contents = Contents(place.directory);
  if (!contents.empty() && !replace) {
    return InUse(place.directory.root());
  }
  return contents;
}

absl::StatusOr<std::string> FindAside(const DataDirectory& directory, absl::Time now) {
  std::string aside = absl::StrCat(directory.root(), "/", kReplacedPrefix,
                                   absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  std::error_code error;
  if (fs::exists(fs::symlink_status(aside, error))) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is ", aside, " already; nothing was restored. Try again in a second"));
  }
  return aside;
}

absl::Status CopyTo(const std::string& staging, const std::string& source, const Manifest& manifest,
                    std::ostream& progress) {
  CopyMeter meter("restore", manifest.total_bytes(), progress);
  for (const BackedUpFile& file : manifest.files) {
    if (file.path == kPostgresDump) {
      continue;
    }
    const std::string target = absl::StrCat(staging, "/", file.path);
    DPAR_ASSIGN_OR_RETURN(const BackedUpFile copied,
                          CopyFileDurably(absl::StrCat(source, "/", file.path), target, file.path, meter));
    if (copied != file) {
      return absl::DataLossError(absl::StrCat(target, " is not what was copied to it"));
    }
  }
  return absl::OkStatus();
}

// Gathers everything a restore needs; until that is complete, nothing else is touched.
absl::Status Stage(const std::string& staging, const std::string& source, const Manifest& manifest,
                   std::ostream& progress) {
  DPAR_RETURN_IF_ERROR(RemoveTree(staging));
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(staging + "/x"));
  DPAR_RETURN_IF_ERROR(CopyTo(staging, source, manifest, progress));
  if (!manifest.is_postgres()) {
    return CheckSqlite(absl::StrCat(staging, "/", kSqliteCopy));
  }
  // Made private first, then filled.
  const std::string script = absl::StrCat(staging, "/", kScript);
  DPAR_RETURN_IF_ERROR(WriteFileDurably(script, "", kPrivate));
  return WritePostgresScript(absl::StrCat(source, "/", kPostgresDump), script);
}

// Moves the store in last.
absl::Status MoveIn(const DataDirectory& directory, const std::string& staging) {
  std::vector<fs::path> paths = Listed(staging);
  std::stable_partition(paths.begin(), paths.end(),
                        [](const fs::path& path) { return path.filename() != kSqliteCopy; });
  for (const fs::path& path : paths) {
    DPAR_RETURN_IF_ERROR(Rename(path, absl::StrCat(directory.root(), "/", path.filename().string())));
  }
  DPAR_RETURN_IF_ERROR(RemoveTree(staging));
  return SyncDirectory(directory.root());
}

// Replaces PostgreSQL's tables first, all or none. After DATA_LOSS and FAILED_PRECONDITION nothing was replaced.
absl::Status Replace(const StorePlace& place, const std::string& staging, const std::vector<fs::path>& contents,
                     const std::string& aside) {
  if (!place.postgres_uri.empty()) {
    const std::string script = absl::StrCat(staging, "/", kScript);
    DPAR_RETURN_IF_ERROR(ReplacePostgres(place.postgres_uri, script));
    DPAR_RETURN_IF_ERROR(RemoveTree(script));
  }
  if (!contents.empty()) {
    DPAR_RETURN_IF_ERROR(MoveAside(contents, aside));
  }
  return MoveIn(place.directory, staging);
}

struct Outcome {
  absl::Status status;
  bool untouched = false;
};

// Replaces under a mark that keeps servers from starting. Checks for servers and contents again after writing it: a
// server that started before is seen here, one that starts after sees the mark.
Outcome ReplaceMarked(const StorePlace& place, const std::string& staging, bool replace, const std::string& aside) {
  const std::string restoring = absl::StrCat(place.directory.root(), "/", kRestoring);
  const bool cut_off_before = !CheckRestored(place.directory).ok();
  Outcome outcome{WriteFileDurably(restoring, "", kPrivate), /*untouched=*/true};
  if (outcome.status.ok()) {
    const absl::StatusOr<std::vector<fs::path>> contents = FindContents(place, replace);
    outcome.status = contents.status();
    if (contents.ok()) {
      outcome.status = Replace(place, staging, *contents, aside);
      outcome.untouched = absl::IsDataLoss(outcome.status) || absl::IsFailedPrecondition(outcome.status);
    }
  }
  if (outcome.status.ok() || (outcome.untouched && !cut_off_before)) {
    outcome.status.Update(RemoveTree(restoring));
  }
  return outcome;
}

}  // namespace

absl::Status CheckRestored(const DataDirectory& directory) {
  std::error_code error;
  return fs::exists(absl::StrCat(directory.root(), "/", kRestoring), error)
             ? absl::FailedPreconditionError(absl::StrCat(
                   "a restore was cut off while it replaced what is in ", directory.root(),
                   ", so that part of it may be what was there before: run `dpard restore --replace` again"))
             : absl::OkStatus();
}

absl::StatusOr<Manifest> Restore(const StorePlace& place, const std::string& source, bool replace, absl::Time now,
                                 std::ostream& progress) {
  const std::string backup(absl::StripSuffix(source, "/"));
  DPAR_RETURN_IF_ERROR(CheckApart(place.directory, backup));
  DPAR_ASSIGN_OR_RETURN(Manifest manifest, Verify(backup, progress));
  if (manifest.is_postgres() == place.postgres_uri.empty()) {
    return absl::FailedPreconditionError(
        manifest.is_postgres() ? "the backup is of a PostgreSQL store; say --store with the URI of a database"
                               : "the backup is of an SQLite store; leave --store out");
  }
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(place.directory.Lock()));
  DPAR_ASSIGN_OR_RETURN(const DirectoryLock lock, DirectoryLock::Acquire(place.directory.Lock()));
  DPAR_RETURN_IF_ERROR(FindContents(place, replace).status());
  DPAR_ASSIGN_OR_RETURN(const std::string aside, FindAside(place.directory, now));
  const std::string staging = absl::StrCat(place.directory.root(), "/", kStaging);
  Outcome outcome{Stage(staging, backup, manifest, progress), /*untouched=*/true};
  if (outcome.status.ok()) {
    outcome = ReplaceMarked(place, staging, replace, aside);
  }
  if (!outcome.status.ok()) {
    RemoveTree(staging).IgnoreError();
    return absl::Status(outcome.status.code(),
                        absl::StrCat(outcome.status.message(), outcome.untouched ? kUntouched : kCutOff));
  }
  return manifest;
}

}  // namespace dpar
