#include "core/graph/zip_directory.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

static_assert(std::endian::native == std::endian::little, "zip fields are read as little-endian memory");

// Layout of the trailers, from the ZIP format's APPNOTE sections 4.3.14 to 4.3.16.
constexpr absl::string_view kTrailerMagic("PK\x05\x06", 4);
constexpr absl::string_view kLocator64Magic("PK\x06\x07", 4);
constexpr absl::string_view kTrailer64Magic("PK\x06\x06", 4);
constexpr absl::string_view kEntryMagic("PK\x01\x02", 4);
constexpr int64_t kTrailerBytes = 22;
constexpr int64_t kLocator64Bytes = 20;
constexpr int64_t kTrailer64Bytes = 56;
constexpr int64_t kMaxCommentBytes = 65535;
// A generous entry: fixed fields, a name, extra fields.
constexpr uint64_t kMaxBytesPerEntry = 4096;

template <typename Field>
Field FieldAt(absl::string_view bytes, size_t offset) {
  Field field = 0;
  std::memcpy(&field, bytes.data() + offset, sizeof(field));
  return field;
}

// Up to `count` bytes from `offset`; fewer at the end of the file or after a read error.
std::string ReadAt(int descriptor, uint64_t offset, int64_t count) {
  std::string bytes(static_cast<size_t>(count), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got <= 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

absl::Status TooManyEntries() { return GraphError(kWholeFile, "is a zip archive with too many entries"); }

absl::Status CheckTrailer(absl::string_view tail, size_t position, int descriptor, uint64_t max_entries) {
  const absl::string_view trailer = tail.substr(position);
  uint64_t entries = 0;  // of a plain trailer at most 65535, which is harmless
  uint64_t directory_bytes = FieldAt<uint32_t>(trailer, 12);
  uint64_t directory_offset = FieldAt<uint32_t>(trailer, 16);
  constexpr size_t kLocatorBytes = static_cast<size_t>(kLocator64Bytes);
  if (position >= kLocatorBytes && tail.substr(position - kLocatorBytes, 4) == kLocator64Magic) {
    const uint64_t offset = FieldAt<uint64_t>(tail, position - kLocatorBytes + 8);
    const std::string trailer64 = ReadAt(descriptor, offset, kTrailer64Bytes);
    if (trailer64.size() < static_cast<size_t>(kTrailer64Bytes) ||
        absl::string_view(trailer64).substr(0, 4) != kTrailer64Magic) {
      return absl::OkStatus();  // libzip refuses it before it allocates
    }
    entries = std::max(FieldAt<uint64_t>(trailer64, 24), FieldAt<uint64_t>(trailer64, 32));
    directory_bytes = FieldAt<uint64_t>(trailer64, 40);
    directory_offset = FieldAt<uint64_t>(trailer64, 48);
  }
  if (entries > max_entries) {
    return TooManyEntries();
  }
  // Compressed data may hold a trailer's magic by chance; only a trailer that points at a directory counts.
  const bool is_directory = ReadAt(descriptor, directory_offset, 4) == std::string(kEntryMagic);
  if (is_directory && directory_bytes > max_entries * kMaxBytesPerEntry) {
    return TooManyEntries();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckZipDirectory(int descriptor, int64_t file_bytes, int64_t max_entries) {
  const int64_t tail_bytes = std::min(file_bytes, kMaxCommentBytes + kTrailerBytes + kLocator64Bytes);
  const std::string tail_text = ReadAt(descriptor, static_cast<uint64_t>(file_bytes - tail_bytes), tail_bytes);
  const absl::string_view tail = tail_text;
  for (size_t at = tail.find(kTrailerMagic); at != absl::string_view::npos; at = tail.find(kTrailerMagic, at + 1)) {
    if (tail.size() - at >= static_cast<size_t>(kTrailerBytes)) {
      DPAR_RETURN_IF_ERROR(CheckTrailer(tail, at, descriptor, static_cast<uint64_t>(max_entries)));
    }
  }
  return absl::OkStatus();
}

}  // namespace dpar
