#include "core/graph/npz.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/graph_error.h"
#include "core/graph/npy.h"
#include "core/graph/zip_directory.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

static_assert(std::endian::native == std::endian::little, "npy entries are read as little-endian memory");

constexpr absl::string_view kSuffix = ".npy";
constexpr size_t kMaxNameBytes = 128;
constexpr uint32_t kMaxHeaderBytes = 1 << 16;
constexpr int64_t kMaxTextBytes = int64_t{16} << 20;
constexpr size_t kChunkBytes = 1 << 18;
// Deflate expands a byte to at most 1032. A larger claim is refused before memory is taken for it.
constexpr uint64_t kMaxDeflateRatio = 1032;
constexpr uint64_t kDeflateSlackBytes = 4096;

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) {
      close(value_);
    }
  }
  [[nodiscard]] int get() const { return value_; }
  void release() { value_ = -1; }

 private:
  int value_;
};

// The array's name, shown in messages and never used as a path; none if it could be a path or has control characters.
std::optional<std::string> ArrayName(const char* entry_name) {
  if (entry_name == nullptr) {
    return std::nullopt;
  }
  const absl::string_view name = entry_name;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  if (!absl::EndsWith(name, kSuffix) || name.size() == kSuffix.size() || name.size() > kMaxNameBytes ||
      name.front() == '.' || !std::all_of(name.begin(), name.end(), plain)) {
    return std::nullopt;
  }
  return std::string(name.substr(0, name.size() - kSuffix.size()));
}

// The disk's fault, not the file's: the same bytes may be read the next time.
absl::Status CannotRead() {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "the file could not be read (its disk may fail); try again");
}

bool IsDiskFault(int zip_error) {
  return zip_error == ZIP_ER_READ || zip_error == ZIP_ER_SEEK || zip_error == ZIP_ER_OPEN ||
         zip_error == ZIP_ER_MEMORY || zip_error == ZIP_ER_TELL;
}

bool IsDiskFault(zip_file_t* entry) { return IsDiskFault(zip_error_code_zip(zip_file_get_error(entry))); }

absl::StatusOr<Archive> OpenArchive(const std::string& path, const NpzLimits& limits, int64_t& file_bytes) {
  // Non-blocking, so that a path that names a pipe does not hang.
  Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts = {};
  if (descriptor.get() < 0 || fstat(descriptor.get(), &facts) != 0) {
    if (errno == EIO || errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      return CannotRead();
    }
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                     absl::StrCat("cannot open ", path, ": ", std::strerror(errno)), {{"resource", path}});
  }
  if (!S_ISREG(facts.st_mode)) {
    return GraphError(kWholeFile, "is not a regular file");
  }
  if (facts.st_size == 0) {
    return GraphError(kWholeFile, "is empty");
  }
  file_bytes = facts.st_size;
  std::array<char, 2> start = {};
  const ssize_t got = pread(descriptor.get(), start.data(), start.size(), 0);
  if (got < 0) {
    return CannotRead();
  }
  if (got < static_cast<ssize_t>(start.size()) || start[0] != 'P' || start[1] != 'K') {
    return GraphError(kWholeFile, "is not an npz file (not a zip archive)");
  }
  DPAR_RETURN_IF_ERROR(CheckZipDirectory(descriptor.get(), file_bytes, limits.max_arrays));
  int error = 0;
  Archive archive(zip_fdopen(descriptor.get(), 0, &error));
  if (archive == nullptr && IsDiskFault(error)) {
    return CannotRead();
  }
  if (archive == nullptr) {
    return GraphError(kWholeFile, "is a truncated or damaged zip archive");
  }
  descriptor.release();
  return archive;
}

absl::Status ReadExactly(zip_file_t* entry, absl::string_view array, void* out, uint64_t count) {
  auto* cursor = static_cast<char*>(out);
  while (count > 0) {
    const zip_int64_t got = zip_fread(entry, cursor, count);
    if (got <= 0) {
      return got < 0 && IsDiskFault(entry) ? CannotRead() : GraphError(array, "is truncated or damaged");
    }
    cursor += got;
    count -= static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

template <typename Stored, typename Target>
absl::Status Widen(absl::string_view array, int64_t position, std::span<const Stored> stored, std::span<Target> out) {
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!std::in_range<Target>(stored[i])) {
      return GraphErrorAt(array, position + static_cast<int64_t>(i), "does not fit a 64-bit signed integer");
    }
    out[i] = static_cast<Target>(stored[i]);
  }
  return absl::OkStatus();
}

template <typename Stored, typename Target>
absl::Status VisitNumbers(zip_file_t* entry, absl::string_view array, int64_t count, const NpyVisitor& visit) {
  constexpr bool kWidens = !std::is_same_v<Stored, Target>;
  std::vector<Stored> stored(std::min(static_cast<size_t>(count), kChunkBytes / sizeof(Target)));
  std::vector<Target> widened(kWidens ? stored.size() : 0);
  int64_t done = 0;
  do {
    const auto entries = static_cast<size_t>(std::min(static_cast<int64_t>(stored.size()), count - done));
    DPAR_RETURN_IF_ERROR(ReadExactly(entry, array, stored.data(), entries * sizeof(Stored)));
    const std::span<const Stored> chunk = std::span(stored).first(entries);
    if constexpr (kWidens) {
      DPAR_RETURN_IF_ERROR(Widen<Stored>(array, done, chunk, std::span(widened)));
      DPAR_RETURN_IF_ERROR(visit(done, std::span<const Target>(widened).first(entries)));
    } else {
      DPAR_RETURN_IF_ERROR(visit(done, chunk));
    }
    done += static_cast<int64_t>(entries);
  } while (done < count);
  return absl::OkStatus();
}

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

absl::StatusOr<std::string> ReadText(zip_file_t* entry, absl::string_view array, const NpyHeader& header) {
  constexpr uint32_t kMaxCodePoint = 0x10ffff;
  std::string bytes(static_cast<size_t>(header.count * header.item_bytes), '\0');
  DPAR_RETURN_IF_ERROR(ReadExactly(entry, array, bytes.data(), bytes.size()));
  if (!header.shape.empty()) {
    return bytes;
  }
  std::string text;
  if (header.kind == NpyKind::kByteText) {
    text = std::move(bytes);
  } else {
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint32_t)) {
      uint32_t code = 0;
      std::memcpy(&code, bytes.data() + at, sizeof(code));
      if (code > kMaxCodePoint || (code >= 0xd800 && code < 0xe000)) {
        return GraphErrorAt(array, static_cast<int64_t>(at / sizeof(code)), "is not a Unicode character");
      }
      AppendUtf8(code, text);
    }
  }
  text.resize(text.find_last_not_of('\0') + 1);  // numpy pads with zeros
  return text;
}

absl::Status VisitEntries(zip_file_t* entry, absl::string_view name, const NpyHeader& header, const NpyVisitor& visit) {
  const int64_t count = header.count;
  switch (header.kind) {
    case NpyKind::kUtf32Text:
    case NpyKind::kByteText: {
      DPAR_ASSIGN_OR_RETURN(const std::string text, ReadText(entry, name, header));
      return visit(0, absl::string_view(text));
    }
    case NpyKind::kFloat:
      return header.item_bytes == 4 ? VisitNumbers<float, float>(entry, name, count, visit)
                                    : VisitNumbers<double, double>(entry, name, count, visit);
    case NpyKind::kBool:
      return VisitNumbers<uint8_t, int32_t>(entry, name, count, visit);
    case NpyKind::kSigned:
      switch (header.item_bytes) {
        case 1:
          return VisitNumbers<int8_t, int32_t>(entry, name, count, visit);
        case 2:
          return VisitNumbers<int16_t, int32_t>(entry, name, count, visit);
        case 4:
          return VisitNumbers<int32_t, int32_t>(entry, name, count, visit);
        default:
          return VisitNumbers<int64_t, int64_t>(entry, name, count, visit);
      }
    case NpyKind::kUnsigned:
      break;
  }
  switch (header.item_bytes) {
    case 1:
      return VisitNumbers<uint8_t, int32_t>(entry, name, count, visit);
    case 2:
      return VisitNumbers<uint16_t, int32_t>(entry, name, count, visit);
    case 4:
      return VisitNumbers<uint32_t, int64_t>(entry, name, count, visit);
    default:
      return VisitNumbers<uint64_t, int64_t>(entry, name, count, visit);
  }
}

// Bytes of the whole array with narrow numbers widened. Does not overflow once the stored bytes passed.
int64_t BytesInMemory(const NpyHeader& header) {
  const int64_t wide = header.kind == NpyKind::kUnsigned && header.item_bytes == 4 ? 8 : 4;
  return header.count * std::max(header.item_bytes, wide);
}

template <typename Entry>
void Append(std::span<const Entry> chunk, int64_t count, NpyArray& array) {
  if (!std::holds_alternative<std::vector<Entry>>(array.data)) {
    array.data.emplace<std::vector<Entry>>();
  }
  auto& entries = std::get<std::vector<Entry>>(array.data);
  entries.reserve(static_cast<size_t>(count));
  entries.insert(entries.end(), chunk.begin(), chunk.end());
}
void Append(absl::string_view text, int64_t /*count*/, NpyArray& array) { array.data = std::string(text); }

// The cursor of `entry` stands at the first entry of the array.
struct OpenedArray {
  Entry entry;
  NpyHeader header;
};

}  // namespace

struct NpzFile::State {
  NpzLimits limits;
  int64_t file_bytes = 0;
  int64_t bytes_read = 0;
  Archive archive;
  std::map<std::string, zip_uint64_t> entries;
  std::map<std::string, std::vector<int64_t>> shapes;  // of the arrays opened so far
  std::set<std::string> charged;                       // the arrays that bytes_read counts
  std::function<bool(int64_t)> on_bytes_read = [](int64_t /*bytes*/) { return true; };
  int64_t bytes_visited = 0;

  absl::StatusOr<OpenedArray> OpenArray(const std::string& name);
  absl::StatusOr<zip_stat_t> CheckEntry(const std::string& name, zip_uint64_t index) const;
  // Counts the array against the limits.
  absl::Status Charge(const std::string& name, const NpyHeader& header);
  absl::Status Visit(const std::string& name, const OpenedArray& array, const NpyVisitor& visit);
};

absl::StatusOr<zip_stat_t> NpzFile::State::CheckEntry(const std::string& name, zip_uint64_t index) const {
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  zip_stat_t facts;
  zip_stat_init(&facts);
  if (zip_stat_index(archive.get(), index, 0, &facts) != 0 || (facts.valid & kNeeded) != kNeeded) {
    return GraphError(name, "has a damaged zip entry");
  }
  if (facts.encryption_method != ZIP_EM_NONE) {
    return GraphError(name, "is encrypted");
  }
  if (facts.comp_method != ZIP_CM_STORE && facts.comp_method != ZIP_CM_DEFLATE) {
    return GraphError(name, "uses an unsupported compression; numpy.savez and savez_compressed are fine");
  }
  const bool larger_than_file = facts.comp_size > static_cast<uint64_t>(file_bytes);
  if (larger_than_file || facts.size > facts.comp_size * kMaxDeflateRatio + kDeflateSlackBytes) {
    return GraphError(name, "claims a size that its compressed bytes cannot hold");
  }
  return facts;
}

absl::StatusOr<OpenedArray> NpzFile::State::OpenArray(const std::string& name) {
  const auto found = entries.find(name);
  if (found == entries.end()) {
    return GraphError(name, "is missing");
  }
  DPAR_ASSIGN_OR_RETURN(const zip_stat_t facts, CheckEntry(name, found->second));
  Entry entry(zip_fopen_index(archive.get(), found->second, 0));
  if (entry == nullptr) {
    return IsDiskFault(zip_error_code_zip(zip_get_error(archive.get()))) ? CannotRead()
                                                                         : GraphError(name, "has a damaged zip entry");
  }
  constexpr absl::string_view kMagic = "\x93NUMPY";
  std::array<char, 8> preamble = {};
  DPAR_RETURN_IF_ERROR(ReadExactly(entry.get(), name, preamble.data(), preamble.size()));
  const char major = preamble[6];
  if (absl::string_view(preamble.data(), kMagic.size()) != kMagic || major < 1 || major > 3 || preamble[7] != 0) {
    return GraphError(name, "is not an npy array of format version 1, 2 or 3");
  }
  uint32_t header_bytes = 0;
  const uint64_t length_bytes = major == 1 ? 2 : 4;
  DPAR_RETURN_IF_ERROR(ReadExactly(entry.get(), name, &header_bytes, length_bytes));
  if (header_bytes > kMaxHeaderBytes) {
    return GraphError(name, "has a header that is too long");
  }
  std::string dictionary(header_bytes, '\0');
  DPAR_RETURN_IF_ERROR(ReadExactly(entry.get(), name, dictionary.data(), dictionary.size()));
  DPAR_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(name, dictionary));
  const uint64_t payload = static_cast<uint64_t>(header.count) * static_cast<uint64_t>(header.item_bytes);
  const uint64_t before_payload = preamble.size() + length_bytes + header_bytes;
  if (facts.size < before_payload || facts.size - before_payload != payload) {
    return GraphError(name, "has a shape that disagrees with its size in the zip directory");
  }
  if (shapes.emplace(name, header.shape).first->second != header.shape) {
    return GraphError(name, "changed while the file was read");
  }
  return OpenedArray{std::move(entry), std::move(header)};
}

absl::Status NpzFile::State::Charge(const std::string& name, const NpyHeader& header) {
  const bool is_text = header.kind == NpyKind::kUtf32Text || header.kind == NpyKind::kByteText;
  const int64_t maximum =
      is_text && header.shape.empty() ? std::min(kMaxTextBytes, limits.max_array_bytes) : limits.max_array_bytes;
  if (header.count * header.item_bytes > maximum || BytesInMemory(header) > maximum) {
    return GraphError(name, absl::StrCat("is larger than ", maximum, " bytes when decompressed"));
  }
  const int64_t bytes = BytesInMemory(header);
  if (charged.contains(name)) {
    return absl::OkStatus();
  }
  if (bytes > limits.max_total_bytes - bytes_read) {
    return GraphError(name, absl::StrCat("takes the file over ", limits.max_total_bytes, " bytes when decompressed"));
  }
  charged.insert(name);
  bytes_read += bytes;
  return absl::OkStatus();
}

absl::Status NpzFile::State::Visit(const std::string& name, const OpenedArray& array, const NpyVisitor& visit) {
  const auto watched = [&](int64_t position, const NpyChunk& chunk) -> absl::Status {
    const size_t length = std::visit([](const auto& part) { return part.size(); }, chunk);
    bytes_visited += static_cast<int64_t>(length) * array.header.item_bytes;
    return on_bytes_read(bytes_visited) ? visit(position, chunk) : absl::CancelledError("reading an array was stopped");
  };
  DPAR_RETURN_IF_ERROR(VisitEntries(array.entry.get(), name, array.header, watched));
  // libzip compares length and checksum with the directory when it reaches the end, so the end must be asked for.
  char beyond = 0;
  if (const zip_int64_t got = zip_fread(array.entry.get(), &beyond, 1); got != 0) {
    if (got < 0 && IsDiskFault(array.entry.get())) {
      return CannotRead();
    }
    return GraphError(name, "is damaged: its bytes disagree with the zip directory");
  }
  return absl::OkStatus();
}

NpzFile::NpzFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
NpzFile::NpzFile(NpzFile&& other) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&& other) noexcept = default;
NpzFile::~NpzFile() = default;

absl::StatusOr<NpzFile> NpzFile::Open(const std::string& path, const NpzLimits& limits) {
  auto state = std::make_unique<State>();
  state->limits = limits;
  DPAR_ASSIGN_OR_RETURN(state->archive, OpenArchive(path, limits, state->file_bytes));
  const zip_int64_t count = zip_get_num_entries(state->archive.get(), 0);
  if (count > limits.max_arrays) {
    return GraphError(kWholeFile, "is a zip archive with too many entries");
  }
  for (zip_int64_t index = 0; index < count; ++index) {
    const auto entry = static_cast<zip_uint64_t>(index);
    std::optional<std::string> name = ArrayName(zip_get_name(state->archive.get(), entry, ZIP_FL_ENC_RAW));
    if (!name.has_value()) {
      return GraphErrorAt(kWholeFile, index, "has a name that is not a plain <array>.npy");
    }
    if (!state->entries.emplace(*name, entry).second) {
      return GraphError(*name, "is in the file twice");
    }
  }
  return NpzFile(std::move(state));
}

bool NpzFile::Contains(absl::string_view name) const { return state_->entries.count(std::string(name)) > 0; }

int64_t NpzFile::BytesOf(absl::string_view name) const {
  const auto found = state_->entries.find(std::string(name));
  zip_stat_t facts;
  zip_stat_init(&facts);
  if (found == state_->entries.end() || zip_stat_index(state_->archive.get(), found->second, 0, &facts) != 0 ||
      (facts.valid & ZIP_STAT_SIZE) == 0) {
    return 0;
  }
  return static_cast<int64_t>(std::min(facts.size, static_cast<uint64_t>(state_->limits.max_array_bytes)));
}

void NpzFile::OnBytesRead(std::function<bool(int64_t bytes)> callback) { state_->on_bytes_read = std::move(callback); }

absl::StatusOr<std::vector<int64_t>> NpzFile::ReadShape(absl::string_view name) {
  DPAR_ASSIGN_OR_RETURN(const OpenedArray opened, state_->OpenArray(std::string(name)));
  return opened.header.shape;
}

absl::StatusOr<NpyArray> NpzFile::ReadArray(absl::string_view name) {
  const std::string key(name);
  DPAR_ASSIGN_OR_RETURN(const OpenedArray opened, state_->OpenArray(key));
  DPAR_RETURN_IF_ERROR(state_->Charge(key, opened.header));
  NpyArray array;
  array.shape = opened.header.shape;
  DPAR_RETURN_IF_ERROR(state_->Visit(key, opened, [&](int64_t /*position*/, const NpyChunk& chunk) {
    std::visit([&](const auto& entries) { Append(entries, opened.header.count, array); }, chunk);
    return absl::OkStatus();
  }));
  return array;
}

absl::Status NpzFile::ReadChunks(absl::string_view name, const NpyVisitor& visit) {
  const std::string key(name);
  DPAR_ASSIGN_OR_RETURN(const OpenedArray opened, state_->OpenArray(key));
  DPAR_RETURN_IF_ERROR(state_->Charge(key, opened.header));
  return state_->Visit(key, opened, visit);
}

}  // namespace dpar
