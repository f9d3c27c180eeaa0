// Removes model files that a crash left behind.
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/queue/queue.h"
#include "server/store/read_from.h"
#include "server/worker/worker.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

absl::Status CannotList() {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, "cannot list the data directory");
}

// The lease of the job's output or of its running attempt; nothing when no files are needed.
absl::StatusOr<std::optional<int64_t>> NeededLease(Transaction& transaction, const std::string& job) {
  const absl::StatusOr<StoredJob> stored = GetJob(transaction, job);
  if (absl::IsNotFound(stored.status())) {
    return std::nullopt;
  }
  DPAR_RETURN_IF_ERROR(stored.status());
  if (stored->job.state() == v1::Job::SUCCEEDED) {
    DPAR_ASSIGN_OR_RETURN(const JobOutput output, GetOutput(transaction, job));
    return output.lease;
  }
  return stored->job.state() == v1::Job::RUNNING ? std::optional<int64_t>(stored->lease) : std::nullopt;
}

absl::Status SweepJob(const fs::path& directory, std::optional<int64_t> needed) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (!needed.has_value() || entry->path().filename() != absl::StrCat(*needed)) {
      DPAR_RETURN_IF_ERROR(RemoveTree(entry->path().string()));
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return CannotList();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SweepModels(Database& database, const DataDirectory& directory) {
  return directory.ForEachResource("jobs", [&](const std::string& job, const std::string& path) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const std::optional<int64_t> needed,
                          ReadFrom(database, [&](Transaction& transaction) { return NeededLease(transaction, job); }));
    return SweepJob(path, needed);
  });
}

}  // namespace dpar
