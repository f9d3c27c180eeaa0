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
#include "core/status_macros.h"
#include "server/directory_lock.h"
#include "server/store/read_from.h"
#include "server/store/store_copy.h"
#include "server/upkeep/copy_file.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr char kReplacedPrefix[] = "replaced-";
constexpr char kPartSuffix[] = ".part";
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
  int64_t total = 0;
  for (const BackedUpFile& expected : manifest.files) {
    total += expected.bytes;
  }
  CopyMeter meter("verify", total, progress);
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

// What is in the directory besides its lock, what earlier restores moved aside, and what file systems put there.
std::vector<fs::path> Contents(const DataDirectory& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory.root(), error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name != "lock" && name != "lost+found" && !absl::StartsWith(name, kReplacedPrefix)) {
      found.push_back(entry->path());
    }
  }
  // SQLite's log goes after the store: a store without it would be whole, and older than it was.
  std::stable_partition(found.begin(), found.end(), [](const fs::path& path) {
    return !absl::EndsWith(path.string(), "-wal") && !absl::EndsWith(path.string(), "-shm");
  });
  return found;
}

// A backup that lies in the data directory would be moved aside with it.
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

absl::Status MoveAside(const std::vector<fs::path>& contents, const std::string& aside) {
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(aside + "/x"));
  for (const fs::path& path : contents) {
    if (rename(path.c_str(), (fs::path(aside) / path.filename()).c_str()) != 0) {
      return absl::UnavailableError(absl::StrCat("cannot move ", path.string(), ": ", std::strerror(errno)));
    }
  }
  return SyncDirectory(aside);
}

absl::Status InUse(absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is not empty; nothing was restored. Restore to an empty place, or say --replace"));
}

// Sessions of a server that has just ended take a moment to go.
absl::Status AwaitNoSessions(Database& database) {
  const absl::Time deadline = absl::Now() + kSessionPatience;
  while (true) {
    DPAR_ASSIGN_OR_RETURN(const int64_t sessions,
                          ReadFrom(database, [](Transaction& transaction) { return PostgresSessions(transaction); }));
    if (sessions == 0) {
      return absl::OkStatus();
    }
    if (absl::Now() >= deadline) {
      return absl::FailedPreconditionError(
          absl::StrCat(sessions, " other sessions use the database; stop every dpard of the fleet first"));
    }
    absl::SleepFor(kSessionPause);
  }
}

absl::Status CheckPostgres(const std::string& uri, bool replace) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenPostgres(uri));
  DPAR_RETURN_IF_ERROR(AwaitNoSessions(*database));
  using Tables = std::vector<std::string>;
  DPAR_ASSIGN_OR_RETURN(const Tables tables,
                        ReadFrom(*database, [](Transaction& transaction) { return PostgresTables(transaction); }));
  return tables.empty() || replace ? absl::OkStatus() : InUse("the database");
}

absl::Status FillPostgres(const std::string& uri, const std::string& dump) {
  DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenPostgres(uri));
  DPAR_RETURN_IF_ERROR(database->Write([](Transaction& transaction) { return DropPostgresTables(transaction); }));
  return LoadPostgres(uri, dump);
}

absl::Status CopyBack(const DataDirectory& directory, const std::string& source, const Manifest& manifest,
                      std::ostream& progress) {
  int64_t total = 0;
  for (const BackedUpFile& file : manifest.files) {
    total += file.bytes;
  }
  CopyMeter meter("restore", total, progress);
  for (const BackedUpFile& file : manifest.files) {
    if (file.path == kPostgresDump) {
      continue;
    }
    // The store gets its name when everything that it names is there.
    const std::string target =
        absl::StrCat(directory.root(), "/", file.path, file.path == kSqliteCopy ? kPartSuffix : "");
    DPAR_ASSIGN_OR_RETURN(const BackedUpFile copied,
                          CopyFileDurably(absl::StrCat(source, "/", file.path), target, file.path, meter));
    if (copied != file) {
      return absl::DataLossError(absl::StrCat(target, " is not what was copied to it"));
    }
  }
  return absl::OkStatus();
}

absl::Status PlaceSqlite(const DataDirectory& directory) {
  const std::string part = directory.Database() + kPartSuffix;
  DPAR_RETURN_IF_ERROR(CheckSqlite(part));
  if (rename(part.c_str(), directory.Database().c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot rename ", part, ": ", std::strerror(errno)));
  }
  return SyncDirectory(directory.root());
}

}  // namespace

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
  if (manifest.is_postgres()) {
    DPAR_RETURN_IF_ERROR(CheckPostgres(place.postgres_uri, replace));
  }
  const std::vector<fs::path> contents = Contents(place.directory);
  if (!contents.empty()) {
    if (!replace) {
      return InUse(place.directory.root());
    }
    DPAR_RETURN_IF_ERROR(
        MoveAside(contents, absl::StrCat(place.directory.root(), "/", kReplacedPrefix,
                                         absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()))));
  }
  DPAR_RETURN_IF_ERROR(CopyBack(place.directory, backup, manifest, progress));
  DPAR_RETURN_IF_ERROR(manifest.is_postgres()
                           ? FillPostgres(place.postgres_uri, absl::StrCat(backup, "/", kPostgresDump))
                           : PlaceSqlite(place.directory));
  return manifest;
}

}  // namespace dpar
