// What nobody needs any more: files that belong to nothing, and uploads that were not finished in time.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "server/store/read_from.h"
#include "server/uploads/uploads.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUploadsAtOnce = 100;

// Calls `visit` with the name tenants/{t}/{kind}/{id} and the path of everything two levels below `root`/{kind}.
absl::Status ForEachEntry(const std::string& root, absl::string_view kind,
                          const std::function<absl::Status(const std::string&, const std::string&)>& visit) {
  std::error_code error;
  const fs::path top = fs::path(root) / std::string(kind);
  for (fs::directory_iterator tenant(top, error); !error && tenant != fs::directory_iterator();
       tenant.increment(error)) {
    for (fs::directory_iterator entry(tenant->path(), error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      DPAR_RETURN_IF_ERROR(visit(absl::StrCat("tenants/", tenant->path().filename().string(), "/", kind, "/",
                                              entry->path().filename().string()),
                                 entry->path().string()));
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return absl::UnavailableError("cannot list the data directory");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Uploads::Sweep() {
  DPAR_RETURN_IF_ERROR(
      ForEachEntry(directory_.root(), "uploads",
                   [&](const std::string& name, const std::string& path) { return SweepUpload(name, path); }));
  return ForEachEntry(directory_.root(), "datasets",
                      [&](const std::string& name, const std::string& /*path*/) { return SweepDataset(name); });
}

absl::Status Uploads::SweepUpload(const std::string& name, const std::string& path) const {
  const absl::StatusOr<StoredUpload> stored = Find(name);
  if (!stored.ok() && !absl::IsNotFound(stored.status())) {
    return stored.status();
  }
  const bool open = stored.ok() && stored->state == v1::Upload::OPEN;
  return open ? absl::OkStatus() : RemoveTree(path);
}

absl::Status Uploads::SweepDataset(const std::string& name) const {
  // Another server may have written the file and be about to record it.
  const absl::StatusOr<std::unique_ptr<NameHold>> hold = database_.Hold(name, absl::ZeroDuration());
  if (!hold.ok()) {
    return absl::OkStatus();
  }
  const absl::Status found =
      database_.Read([&](Transaction& transaction) { return GetDataset(transaction, name).status(); });
  return absl::IsNotFound(found) ? RemoveUnlessSealed(name) : found;
}

absl::Status Uploads::RefuseExpired(const std::string& tenant, absl::Time now) {
  const absl::Time oldest = now - UploadLife();
  std::string after;
  while (true) {
    DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadFrom(database_, [&](Transaction& transaction) {
                            return OpenUploadsBefore(transaction, tenant, oldest, after, kUploadsAtOnce);
                          }));
    for (const std::string& name : names) {
      DPAR_RETURN_IF_ERROR(RefuseIfIdle(name));
    }
    if (static_cast<int64_t>(names.size()) < kUploadsAtOnce) {
      return absl::OkStatus();
    }
    after = names.back();
  }
}

absl::Status Uploads::RefuseIfIdle(const std::string& name) {
  // Whoever works on it has not abandoned it.
  const absl::StatusOr<std::unique_ptr<NameHold>> hold = database_.Hold(name, absl::ZeroDuration());
  if (!hold.ok()) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const StoredUpload stored, Find(name));
  return stored.state == v1::Upload::OPEN ? Refuse(name, absl::OkStatus()) : absl::OkStatus();
}

}  // namespace dpar
