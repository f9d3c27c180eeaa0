#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <list>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/npy.h"
#include "core/graph/npz.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kTemporaryNames = 100;
constexpr zip_uint32_t kCompressionLevel = 6;
// 1980-01-01 00:00, the first moment a zip can name: the file's bytes must not depend on when it was written.
constexpr zip_uint16_t kDosTime = 0;
constexpr zip_uint16_t kDosDate = (1 << 5) | 1;

absl::Status WriteError(const std::string& path, absl::string_view why) {
  return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, absl::StrCat("cannot write ", path, ": ", why));
}

// Removes the file unless it was renamed away.
class TemporaryFile {
 public:
  static absl::StatusOr<TemporaryFile> Create(const std::string& path) {
    for (int attempt = 0; attempt < kTemporaryNames; ++attempt) {
      std::string name = absl::StrCat(path, ".", getpid(), ".", attempt, ".tmp");
      const int descriptor = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
      if (descriptor >= 0) {
        close(descriptor);
        return TemporaryFile(std::move(name));
      }
      if (errno != EEXIST) {
        break;
      }
    }
    return WriteError(path, std::strerror(errno));
  }
  TemporaryFile(TemporaryFile&& other) noexcept : name_(std::exchange(other.name_, std::string())) {}
  TemporaryFile& operator=(TemporaryFile&& other) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) {
      unlink(name_.c_str());
    }
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  // Syncs, renames and syncs the directory, so that after a crash the path holds the old file or the new one.
  absl::Status MoveTo(const std::string& path) {
    DPAR_RETURN_IF_ERROR(Sync(name_, O_RDONLY, path));
    if (rename(name_.c_str(), path.c_str()) != 0) {
      return WriteError(path, std::strerror(errno));
    }
    name_.clear();
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    return Sync(directory.empty() ? "." : directory.string(), O_RDONLY | O_DIRECTORY, path);
  }

 private:
  explicit TemporaryFile(std::string name) : name_(std::move(name)) {}

  static absl::Status Sync(const std::string& name, int flags, const std::string& path) {
    const int descriptor = open(name.c_str(), flags | O_CLOEXEC);
    if (descriptor < 0) {
      return WriteError(path, std::strerror(errno));
    }
    const int result = fsync(descriptor);
    const int cause = errno;
    close(descriptor);
    return result == 0 ? absl::OkStatus() : WriteError(path, std::strerror(cause));
  }

  std::string name_;
};

struct Descr {
  std::string operator()(std::span<const int64_t> /*entries*/) const { return "<i8"; }
  std::string operator()(std::span<const int32_t> /*entries*/) const { return "<i4"; }
  std::string operator()(std::span<const float> /*entries*/) const { return "<f4"; }
  std::string operator()(std::span<const double> /*entries*/) const { return "<f8"; }
  // numpy knows no text of width 0; an empty one is a single padding byte.
  std::string operator()(absl::string_view text) const { return absl::StrCat("|S", std::max<size_t>(text.size(), 1)); }
};

zip_buffer_fragment_t Fragment(const void* data, size_t bytes) {
  zip_buffer_fragment_t fragment;
  // libzip's type is shared with buffers it writes to; this one it only reads.
  fragment.data = static_cast<zip_uint8_t*>(const_cast<void*>(data));
  fragment.length = bytes;
  return fragment;
}

zip_buffer_fragment_t Payload(const NpyView& view) {
  return std::visit(
      [](const auto& entries) {
        using Entries = std::decay_t<decltype(entries)>;
        if (std::is_same_v<Entries, absl::string_view> && entries.empty()) {
          return Fragment("", 1);
        }
        return Fragment(entries.data(), entries.size() * sizeof(typename Entries::value_type));
      },
      view.data);
}

bool AddArray(zip_t* archive, const std::string& name, const std::string& header, const NpyView& view) {
  const zip_buffer_fragment_t fragments[] = {Fragment(header.data(), header.size()), Payload(view)};
  zip_source_t* source = zip_source_buffer_fragment(archive, fragments, 2, 0);
  if (source == nullptr) {
    return false;
  }
  const zip_int64_t index = zip_file_add(archive, (name + ".npy").c_str(), source, 0);
  if (index < 0) {
    zip_source_free(source);
    return false;
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  return zip_set_file_compression(archive, entry, ZIP_CM_DEFLATE, kCompressionLevel) == 0 &&
         zip_file_set_dostime(archive, entry, kDosTime, kDosDate, 0) == 0;
}

}  // namespace

absl::Status WriteNpzFile(const std::string& path, const std::map<std::string, NpyView>& arrays) {
  DPAR_ASSIGN_OR_RETURN(TemporaryFile temporary, TemporaryFile::Create(path));
  int error = 0;
  zip_t* archive = zip_open(temporary.name().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (archive == nullptr) {
    return WriteError(path, "the archive could not be started");
  }
  std::list<std::string> headers;  // libzip reads them, and the views, when it closes
  bool complete = true;
  for (const auto& [name, view] : arrays) {
    const std::string& header = headers.emplace_back(MakeNpyHeader(std::visit(Descr(), view.data), view.shape));
    complete = complete && AddArray(archive, name, header, view);
  }
  if (!complete || zip_close(archive) != 0) {
    const std::string why = zip_strerror(archive);
    zip_discard(archive);
    return WriteError(path, why);
  }
  return temporary.MoveTo(path);
}

}  // namespace dpar
