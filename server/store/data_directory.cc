#include "server/store/data_directory.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// tenants/{t}/{collection}/{id} as {root}/{collection}/{t}/{id}.
std::string ResourcePath(const std::string& root, absl::string_view name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  return absl::StrCat(root, "/", parts.at(2), "/", parts.at(1), "/", parts.at(3));
}

}  // namespace

std::string DataDirectory::UploadFile(absl::string_view upload_name) const { return ResourcePath(root_, upload_name); }

std::string DataDirectory::DatasetFile(absl::string_view dataset_name) const {
  return ResourcePath(root_, dataset_name) + "/graph.sealed";
}

std::string DataDirectory::AttemptDirectory(absl::string_view job_name, int64_t lease) const {
  return absl::StrCat(ResourcePath(root_, job_name), "/", lease);
}

std::string DataDirectory::ModelFile(absl::string_view job_name, int64_t lease, absl::string_view name) const {
  return absl::StrCat(AttemptDirectory(job_name, lease), "/", name);
}

absl::Status DataDirectory::ForEachResource(absl::string_view collection, const Visit& visit) const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path top = fs::path(root_) / std::string(collection);
  for (fs::directory_iterator tenant(top, error); !error && tenant != fs::directory_iterator();
       tenant.increment(error)) {
    for (fs::directory_iterator entry(tenant->path(), error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      DPAR_RETURN_IF_ERROR(visit(absl::StrCat("tenants/", tenant->path().filename().string(), "/", collection, "/",
                                              entry->path().filename().string()),
                                 entry->path().string()));
    }
  }
  return error && error != std::errc::no_such_file_or_directory
             ? MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, "cannot list the data directory")
             : absl::OkStatus();
}

}  // namespace dpar
