#include "server/upkeep/backup.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/atomic_file.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/store/read_from.h"
#include "server/store/store_copy.h"
#include "server/upkeep/copy_file.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

// Copies of the store when datasets are deleted during the backup.
constexpr int kMaxTries = 5;
constexpr char kPartSuffix[] = ".part";
constexpr unsigned kPrivate = 0600;

std::string Relative(const DataDirectory& directory, const std::string& path) {
  return std::string(absl::StripPrefix(path, directory.root() + "/"));
}

// What is kept besides the store and the files of its rows. The audit log is copied as far as it goes.
absl::StatusOr<std::vector<std::string>> OtherFiles(const DataDirectory& directory) {
  std::vector<std::string> files;
  for (const std::string& one : {directory.OperatorToken(), directory.AuditLog(), directory.CaCertificate(),
                                 directory.CaKey(), directory.ServerCertificate(), directory.ServerKey()}) {
    std::error_code error;
    if (fs::exists(one, error)) {
      files.push_back(Relative(directory, one));
    }
  }
  return files;
}

// The signing keys at one moment: two equal reads of all files, which are replaced one by one.
absl::StatusOr<std::map<std::string, std::string>> ReadKeys(const DataDirectory& directory) {
  const auto look = [&]() -> absl::StatusOr<std::map<std::string, std::string>> {
    std::map<std::string, std::string> keys;
    for (const std::string& one : {directory.SigningKey(), directory.SigningPublicKey(), directory.SigningKeyList()}) {
      std::error_code error;
      if (fs::exists(one, error)) {
        DPAR_ASSIGN_OR_RETURN(keys[Relative(directory, one)], ReadWholeFile(one));
      }
    }
    return keys;
  };
  DPAR_ASSIGN_OR_RETURN(auto keys, look());
  for (int tries = 0; tries < kMaxTries; ++tries) {
    DPAR_ASSIGN_OR_RETURN(auto again, look());
    if (again == keys) {
      return keys;
    }
    keys = std::move(again);
  }
  return absl::UnavailableError("the signing keys are being changed; try again");
}

class Backup {
 public:
  Backup(const StorePlace& place, std::string part, std::ostream& progress)
      : place_(place), part_(std::move(part)), progress_(progress) {}

  absl::StatusOr<Manifest> Run(absl::Time now) {
    for (int tries = 1;; ++tries) {
      DPAR_ASSIGN_OR_RETURN(const std::vector<NamedFile> named, CopyStore());
      const absl::Status copied = CopyNamed(named);
      if (copied.ok()) {
        DPAR_RETURN_IF_ERROR(Prune(named));
        break;
      }
      if (!absl::IsNotFound(copied) || tries == kMaxTries) {
        return absl::IsNotFound(copied)
                   ? absl::DataLossError(absl::StrCat(copied.message(), ", and the store names it; run `dpard check`"))
                   : copied;
      }
    }
    DPAR_RETURN_IF_ERROR(CopyOthers());
    Manifest manifest;
    manifest.made_at = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
    manifest.software = absl::StrCat("dpard ", DPAR_VERSION);
    for (const auto& [path, file] : files_) {
      manifest.files.push_back(file);
    }
    DPAR_RETURN_IF_ERROR(WriteFileDurably(Inside(kManifestFile), FormatManifest(manifest), kPrivate));
    return manifest;
  }

 private:
  [[nodiscard]] std::string Inside(const std::string& path) const { return absl::StrCat(part_, "/", path); }

  absl::StatusOr<std::vector<NamedFile>> CopyStore() {
    std::vector<NamedFile> named;
    const bool postgres = !place_.postgres_uri.empty();
    const std::string copy = postgres ? kPostgresDump : kSqliteCopy;
    DPAR_RETURN_IF_ERROR(RemoveTree(Inside(copy)));
    // Made private first, then filled.
    DPAR_RETURN_IF_ERROR(WriteFileDurably(Inside(copy), "", kPrivate));
    if (postgres) {
      DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenPostgres(place_.postgres_uri));
      DPAR_RETURN_IF_ERROR(database->Read([&](Transaction& transaction) -> absl::Status {
        DPAR_RETURN_IF_ERROR(CheckSchema(transaction));
        DPAR_ASSIGN_OR_RETURN(named, NamedFiles(transaction, place_.directory));
        return DumpPostgres(place_.postgres_uri, transaction, Inside(copy));
      }));
    } else {
      std::error_code error;
      const auto bytes = static_cast<double>(fs::file_size(place_.directory.Database(), error));
      CopyMeter meter("store", static_cast<int64_t>(bytes), progress_);
      DPAR_RETURN_IF_ERROR(CopySqlite(place_.directory.Database(), Inside(copy), [&](double fraction) {
        meter.Reach(static_cast<int64_t>(fraction * bytes));
        return true;
      }));
      DPAR_ASSIGN_OR_RETURN(named, ReadCopy(Inside(copy)));
    }
    DPAR_RETURN_IF_ERROR(SyncFile(Inside(copy)));
    DPAR_ASSIGN_OR_RETURN(files_[copy], DescribeFile(Inside(copy), copy));
    return named;
  }

  absl::StatusOr<std::vector<NamedFile>> ReadCopy(const std::string& copy) const {
    DPAR_ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenSqlite(copy));
    return ReadFrom(*database, [&](Transaction& transaction) -> absl::StatusOr<std::vector<NamedFile>> {
      DPAR_RETURN_IF_ERROR(CheckSchema(transaction));
      return NamedFiles(transaction, place_.directory);
    });
  }

  absl::Status CopyNamed(const std::vector<NamedFile>& named) {
    int64_t total = 0;
    for (const NamedFile& file : named) {
      std::error_code error;
      const uintmax_t bytes = fs::file_size(absl::StrCat(place_.directory.root(), "/", file.path), error);
      total += error ? 0 : static_cast<int64_t>(bytes);
    }
    CopyMeter meter("files", total, progress_);
    for (const NamedFile& file : named) {
      if (files_.count(file.path) == 0) {
        DPAR_RETURN_IF_ERROR(CopyOne(file.path, meter));
      }
      if (!file.sha256.empty() && files_.at(file.path).sha256 != file.sha256) {
        return absl::DataLossError(absl::StrCat(
            file.path, " is not what the store says; run `dpard check` and restore it from another backup"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CopyOthers() {
    CopyMeter meter("files", 0, progress_);
    DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> others, OtherFiles(place_.directory));
    for (const std::string& path : others) {
      DPAR_RETURN_IF_ERROR(CopyOne(path, meter));
    }
    // After the store, so that every key that signed its certificates is included.
    DPAR_ASSIGN_OR_RETURN(const auto keys, ReadKeys(place_.directory));
    for (const auto& [path, bytes] : keys) {
      DPAR_RETURN_IF_ERROR(MakeParentDirectory(Inside(path)));
      DPAR_RETURN_IF_ERROR(WriteFileDurably(Inside(path), bytes, kPrivate));
      DPAR_ASSIGN_OR_RETURN(files_[path], DescribeFile(Inside(path), path));
    }
    return absl::OkStatus();
  }

  absl::Status CopyOne(const std::string& path, CopyMeter& meter) {
    DPAR_ASSIGN_OR_RETURN(files_[path],
                          CopyFileDurably(absl::StrCat(place_.directory.root(), "/", path), Inside(path), path, meter));
    return absl::OkStatus();
  }

  // Removes files that only an earlier copy of the store named.
  absl::Status Prune(const std::vector<NamedFile>& named) {
    std::set<std::string> needed = {kSqliteCopy, kPostgresDump};
    for (const NamedFile& file : named) {
      needed.insert(file.path);
    }
    for (auto file = files_.begin(); file != files_.end();) {
      if (needed.count(file->first) > 0) {
        ++file;
        continue;
      }
      DPAR_RETURN_IF_ERROR(RemoveTree(Inside(file->first)));
      file = files_.erase(file);
    }
    return absl::OkStatus();
  }

  const StorePlace& place_;
  const std::string part_;
  std::ostream& progress_;
  std::map<std::string, BackedUpFile> files_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenStore(const StorePlace& place) {
  return place.postgres_uri.empty() ? OpenSqlite(place.directory.Database()) : OpenPostgres(place.postgres_uri);
}

absl::StatusOr<std::vector<NamedFile>> NamedFiles(Transaction& transaction, const DataDirectory& directory) {
  std::vector<NamedFile> files;
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> datasets,
                        transaction.QueryTexts("SELECT name FROM datasets WHERE delete_time IS NULL", {}));
  for (const std::string& name : datasets) {
    files.push_back({Relative(directory, directory.DatasetFile(name)), ""});
  }
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> outputs,
      transaction.Query("SELECT o.job, o.lease, f.name, f.sha256 FROM outputs o JOIN output_files f ON f.job = o.job",
                        {}));
  for (const Row& row : outputs) {
    RowReader reader(row);
    const std::string job = reader.Text();
    const int64_t lease = reader.Int();
    const std::string name = reader.Text();
    const std::string digest = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
    files.push_back({Relative(directory, directory.ModelFile(job, lease, name)), digest});
  }
  std::sort(files.begin(), files.end(), [](const NamedFile& a, const NamedFile& b) { return a.path < b.path; });
  return files;
}

absl::StatusOr<Manifest> BackUp(const StorePlace& place, const std::string& destination, absl::Time now,
                                std::ostream& progress) {
  const std::string whole(absl::StripSuffix(destination, "/"));
  const std::string part = whole + kPartSuffix;
  for (const std::string& taken : {whole, part}) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(taken, error))) {
      return absl::FailedPreconditionError(
          absl::StrCat(taken, " exists; nothing is written over. Choose another name, or remove it",
                       taken == part ? ": a backup that was cut off left it" : ""));
    }
  }
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(part + "/x"));
  absl::Cleanup remove = [&part] { RemoveTree(part).IgnoreError(); };
  DPAR_ASSIGN_OR_RETURN(Manifest manifest, Backup(place, part, progress).Run(now));
  if (rename(part.c_str(), whole.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot rename ", part, ": ", std::strerror(errno)));
  }
  std::move(remove).Cancel();
  DPAR_RETURN_IF_ERROR(SyncDirectory(fs::path(whole).parent_path().string()));
  return manifest;
}

}  // namespace dpar
