// Removes files that belong to nothing and refuses uploads that were not finished in time.
#include <memory>
#include <string>
#include <vector>

#include "core/status_macros.h"
#include "server/files.h"
#include "server/store/read_from.h"
#include "server/uploads/uploads.h"

namespace dpar {
namespace {

constexpr int64_t kUploadsAtOnce = 100;

}  // namespace

absl::Status Uploads::Sweep() {
  DPAR_RETURN_IF_ERROR(directory_.ForEachResource(
      "uploads", [&](const std::string& name, const std::string& path) { return SweepUpload(name, path); }));
  return directory_.ForEachResource(
      "datasets", [&](const std::string& name, const std::string& /*path*/) { return SweepDataset(name); });
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
  // An upload in use is not abandoned.
  const absl::StatusOr<std::unique_ptr<NameHold>> hold = database_.Hold(name, absl::ZeroDuration());
  if (!hold.ok()) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const StoredUpload stored, Find(name));
  return stored.state == v1::Upload::OPEN ? Refuse(name, absl::OkStatus()) : absl::OkStatus();
}

}  // namespace dpar
