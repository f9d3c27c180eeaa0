#include "server/upkeep/copy_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/atomic_file.h"
#include "core/certificate/digest.h"
#include "core/status_macros.h"
#include "server/files.h"

namespace dpar {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr absl::Duration kTellPeriod = absl::Seconds(1);
constexpr mode_t kPrivate = 0600;

absl::Status CopyFailure(absl::string_view action, const std::string& path) {
  const std::string message = absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(errno));
  return errno == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

}  // namespace

CopyMeter::CopyMeter(std::string what, int64_t total_bytes, std::ostream& out)
    : what_(std::move(what)), total_(total_bytes), out_(out), start_(absl::Now()), last_(start_) {}

void CopyMeter::Reach(int64_t bytes) {
  done_ = bytes;
  const absl::Time now = absl::Now();
  if (now - last_ < kTellPeriod) {
    return;
  }
  last_ = now;
  constexpr double kMebibyte = 1 << 20;
  const double rate = static_cast<double>(done_) / absl::ToDoubleSeconds(now - start_);
  const double left = rate > 0 ? static_cast<double>(total_ - done_) / rate : 0;
  out_ << absl::StreamFormat("%s: %.0f of %.0f MiB, %.0f MiB/s, %.0f s left\n", what_,
                             static_cast<double>(done_) / kMebibyte, static_cast<double>(total_) / kMebibyte,
                             rate / kMebibyte, left)
       << std::flush;
}

absl::StatusOr<BackedUpFile> CopyFileDurably(const std::string& from, const std::string& to, const std::string& path,
                                             CopyMeter& meter) {
  const int source = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) {
    return CopyFailure("read", from);
  }
  const absl::Cleanup close_source = [source] { close(source); };
  DPAR_RETURN_IF_ERROR(MakeParentDirectory(to));
  DPAR_ASSIGN_OR_RETURN(AtomicFile target, AtomicFile::Create(to, kPrivate));
  std::vector<char> piece(kPieceBytes);
  while (true) {
    const ssize_t got = read(source, piece.data(), piece.size());
    if (got < 0 && errno != EINTR) {
      return CopyFailure("read", from);
    }
    if (got == 0) {
      break;
    }
    const auto bytes = static_cast<size_t>(std::max<ssize_t>(0, got));
    DPAR_RETURN_IF_ERROR(target.Append({piece.data(), bytes}));
    meter.Add(static_cast<int64_t>(bytes));
  }
  DPAR_RETURN_IF_ERROR(target.Commit());
  // Read back from the copy.
  DPAR_ASSIGN_OR_RETURN(BackedUpFile copied, DescribeFile(to, path));
  if (copied.bytes != target.size()) {
    return absl::DataLossError(absl::StrCat(to, " is not as long as what was written to it"));
  }
  return copied;
}

absl::Status SyncFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return CopyFailure("open", path);
  }
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  if (fsync(descriptor) != 0) {
    return CopyFailure("sync", path);
  }
  return SyncDirectory(std::filesystem::path(path).parent_path().string());
}

absl::StatusOr<BackedUpFile> DescribeFile(const std::string& file, const std::string& path) {
  BackedUpFile described;
  described.path = path;
  DPAR_ASSIGN_OR_RETURN(described.sha256, Sha256File(file));
  std::error_code error;
  described.bytes = static_cast<int64_t>(std::filesystem::file_size(file, error));
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot look at ", file, ": ", error.message()));
  }
  return described;
}

}  // namespace dpar
