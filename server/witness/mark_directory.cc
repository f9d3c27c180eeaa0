#include "server/witness/mark_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/atomic_file.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/resource_name.h"
#include "server/steady_time.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kPrivate = 0600;
constexpr absl::string_view kMarkSuffix = ".mark";
constexpr absl::string_view kTenants = "tenants/";
// Not a tenant's directory: ids have no dots.
constexpr absl::string_view kIdsFile = "/store.ids";
constexpr size_t kIdDigits = 32;
constexpr absl::Duration kLockPatience = absl::Seconds(10);
constexpr absl::Duration kLockPause = absl::Milliseconds(10);

absl::Status WitnessError(absl::string_view action, const std::string& path, const std::string& why) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   absl::StrCat("cannot ", action, " ", path, ": ", why));
}

// An error when existence cannot be determined.
absl::StatusOr<bool> Exists(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) {
    return true;
  }
  if (errno == ENOENT) {
    return false;
  }
  return WitnessError("look at", path, std::strerror(errno));
}

absl::StatusOr<std::vector<fs::path>> Listed(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return WitnessError("list", directory.string(), error.message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string MarkDirectory::TenantDirectory(const std::string& tenant) const {
  return absl::StrCat(root_, "/", absl::StripPrefix(tenant, kTenants));
}

std::string MarkDirectory::File(const std::string& population) const {
  return absl::StrCat(TenantDirectory(TenantOf(population)), "/", population.substr(population.rfind('/') + 1),
                      kMarkSuffix);
}

std::string MarkDirectory::PopulationFile(const Content& content) const {
  return absl::StrCat(TenantDirectory(content.tenant), "/", content.digest, ".population");
}

std::string MarkDirectory::PublicFile(const Content& content) const {
  return absl::StrCat(TenantDirectory(content.tenant), "/", content.digest, ".public");
}

std::string MarkDirectory::ContentKeyFile(const std::string& tenant) const {
  return TenantDirectory(tenant) + "/content.key";
}

absl::StatusOr<std::vector<std::string>> MarkDirectory::ReadIds() const {
  const std::string path = absl::StrCat(root_, kIdsFile);
  DPAR_ASSIGN_OR_RETURN(const bool exists, Exists(path));
  std::vector<std::string> ids;
  if (!exists) {
    return ids;
  }
  std::error_code error;
  std::string text;
  if (fs::file_size(path, error) > 0) {
    DPAR_ASSIGN_OR_RETURN(text, ReadWholeFile(path));
  }
  ids = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  const auto is_id = [](const std::string& id) {
    return id.size() == kIdDigits && std::all_of(id.begin(), id.end(), absl::ascii_isxdigit);
  };
  if (!std::all_of(ids.begin(), ids.end(), is_id)) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                     absl::StrCat(path,
                                  " holds no ids, so that nobody knows which store the directory belongs to. "
                                  "Restore the file from a copy of the witness directory"));
  }
  return ids;
}

absl::Status MarkDirectory::WriteIds(const std::vector<std::string>& ids) const {
  return WriteFileDurably(absl::StrCat(root_, kIdsFile), absl::StrJoin(ids, "\n") + "\n", kPrivate);
}

absl::Status MarkDirectory::CheckExpected() const {
  if (expected_.empty()) {
    return absl::OkStatus();
  }
  // A bad ids file says nothing about any mark.
  const absl::StatusOr<std::vector<std::string>> ids = ReadIds();
  if (!ids.ok()) {
    return WitnessError("use", root_, std::string(ids.status().message()));
  }
  return std::find(ids->begin(), ids->end(), expected_) != ids->end()
             ? absl::OkStatus()
             : WitnessError("use", root_,
                            "it is no longer the directory that this server began with; is its disk mounted?");
}

absl::Status MarkDirectory::Make() const {
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(root_ + "/x"));
  return TryWriting();
}

absl::Status MarkDirectory::TryWriting() const {
  DPAR_RETURN_IF_ERROR(CheckExpected());
  // Servers of a fleet may try at once: each in its own directory.
  std::string probe = root_ + "/probe-XXXXXX";
  if (mkdtemp(probe.data()) == nullptr) {
    return WitnessError("make a directory in", root_, std::strerror(errno));
  }
  const absl::Status written = WriteFileDurably(probe + "/file", "", kPrivate);
  const absl::Status removed = RemoveTree(probe);
  return written.ok() ? removed : written;
}

absl::StatusOr<DirectoryLock> MarkDirectory::Lock(const std::string& tenant) const {
  const std::string path = TenantDirectory(tenant) + "/lock";
  DPAR_RETURN_IF_ERROR(CheckExpected());
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(path));
  const absl::Time deadline = SteadyNow() + kLockPatience;
  while (true) {
    absl::StatusOr<DirectoryLock> lock = DirectoryLock::Acquire(path);
    if (!absl::IsFailedPrecondition(lock.status())) {
      return lock;
    }
    if (SteadyNow() >= deadline) {
      return WitnessError("lock", path, "another server holds it");
    }
    absl::SleepFor(kLockPause);
  }
}

absl::StatusOr<std::optional<Mark>> MarkDirectory::Read(const std::string& population) const {
  const std::string path = File(population);
  DPAR_RETURN_IF_ERROR(CheckExpected());
  DPAR_ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (!exists) {
    return std::nullopt;
  }
  std::string text;
  std::error_code error;
  // An empty file is readable, and no mark.
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > 0) {
    DPAR_ASSIGN_OR_RETURN(text, ReadWholeFile(path));
  }
  absl::StatusOr<Mark> mark = ParseMark(text);
  if (absl::IsUnimplemented(mark.status())) {
    return absl::UnimplementedError(absl::StrCat(path, ": ", mark.status().message()));
  }
  DPAR_RETURN_IF_ERROR(mark.status());
  if (mark->population != population) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "it is the mark of another population");
  }
  return *std::move(mark);
}

absl::Status MarkDirectory::Write(const Mark& mark) const {
  return WriteFileDurably(File(mark.population), FormatMark(mark), kPrivate);
}

absl::Status MarkDirectory::Sync(const std::string& population) const {
  const absl::Status synced = SyncDirectory(TenantDirectory(TenantOf(population)));
  return synced.ok() ? synced : WitnessError("sync", File(population), std::string(synced.message()));
}

absl::Status MarkDirectory::KeepPopulation(const Content& content, const std::string& population) const {
  DPAR_ASSIGN_OR_RETURN(const std::optional<std::string> kept, PopulationOf(content));
  if (kept.has_value()) {
    return absl::OkStatus();
  }
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(PopulationFile(content)));
  return WriteFileDurably(PopulationFile(content), population + "\n", kPrivate);
}

absl::StatusOr<std::optional<std::string>> MarkDirectory::PopulationOf(const Content& content) const {
  const std::string path = PopulationFile(content);
  DPAR_RETURN_IF_ERROR(CheckExpected());
  DPAR_ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (!exists) {
    return std::nullopt;
  }
  DPAR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  absl::StatusOr<ResourceName> name = ParsePopulationName("population", absl::StripSuffix(text, "\n"));
  if (!name.ok() || name->tenant != content.tenant) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                     absl::StrCat(path,
                                  " names no population; without it the content is not recognised. Restore the file "
                                  "from a copy of the witness directory"));
  }
  return std::move(name->name);
}

absl::Status MarkDirectory::KeepPublic(const Content& content) const {
  DPAR_RETURN_IF_ERROR(CheckExpected());
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(PublicFile(content)));
  return WriteFileDurably(PublicFile(content), "", kPrivate);
}

absl::StatusOr<bool> MarkDirectory::WasPublic(const Content& content) const {
  DPAR_RETURN_IF_ERROR(CheckExpected());
  return Exists(PublicFile(content));
}

absl::StatusOr<std::vector<std::string>> MarkDirectory::List() const {
  std::vector<std::string> populations;
  DPAR_ASSIGN_OR_RETURN(const std::vector<fs::path> tenants, Listed(root_));
  for (const fs::path& tenant : tenants) {
    std::error_code error;
    const bool is_directory = fs::is_directory(tenant, error);
    if (error && error != std::errc::no_such_file_or_directory) {
      return WitnessError("look at", tenant.string(), error.message());
    }
    if (!is_directory) {
      continue;
    }
    DPAR_ASSIGN_OR_RETURN(const std::vector<fs::path> files, Listed(tenant));
    for (const fs::path& file : files) {
      const std::string name = file.filename().string();
      if (absl::EndsWith(name, kMarkSuffix)) {
        populations.push_back(
            absl::StrCat(kTenants, tenant.filename().string(), "/populations/", absl::StripSuffix(name, kMarkSuffix)));
      }
    }
  }
  std::sort(populations.begin(), populations.end());
  return populations;
}

absl::StatusOr<bool> MarkDirectory::HasContentKey(const std::string& tenant) const {
  return Exists(ContentKeyFile(tenant));
}

absl::StatusOr<std::string> MarkDirectory::KeepContentKey(const std::string& tenant, const std::string& fresh) const {
  const std::string path = ContentKeyFile(tenant);
  DPAR_ASSIGN_OR_RETURN(const DirectoryLock lock, Lock(tenant));
  DPAR_ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (!exists) {
    DPAR_RETURN_IF_ERROR(WriteFileDurably(path, absl::BytesToHexString(fresh) + "\n", kPrivate));
    return fresh;
  }
  DPAR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  absl::StatusOr<std::string> key = HexDecode(absl::StripSuffix(text, "\n"));
  if (!key.ok() || key->size() != fresh.size()) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                     absl::StrCat(path,
                                  " holds no content key; without it the tenant's data is not recognised. Restore "
                                  "the file from a copy of the witness directory"));
  }
  return key;
}

}  // namespace dpar
