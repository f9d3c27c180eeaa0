#include "core/graph/sealed_graph.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/graph_error.h"
#include "core/graph/sealed_format.h"
#include "core/mutex.h"
#include "core/pace.h"
#include "core/parallel.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// Entries, or rows, that one thread verifies at a time.
constexpr int64_t kBlock = 1 << 14;
constexpr uint64_t kChunkBytes = 1 << 18;

absl::string_view NameOf(Section section) { return kSectionNames[static_cast<size_t>(section)]; }

absl::Status CannotOpen(const std::string& path, int cause) {
  return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                   absl::StrCat("cannot open ", path, ": ", std::strerror(cause)), {{"resource", path}});
}

absl::Status Damaged(const std::string& path, absl::string_view part, absl::string_view fault) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                   absl::StrCat(part, ": ", fault, "; the file is damaged, restore it from a backup"),
                   {{"resource", path}, {"section", std::string(part)}});
}

class Mapping {
 public:
  Mapping(int descriptor, void* start, size_t bytes) : descriptor_(descriptor), start_(start), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : descriptor_(other.descriptor_), start_(std::exchange(other.start_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) = delete;
  ~Mapping() {
    if (start_ != nullptr) {
      munmap(start_, bytes_);
      close(descriptor_);
    }
  }

  [[nodiscard]] int descriptor() const { return descriptor_; }

  [[nodiscard]] const std::byte* start() const { return static_cast<const std::byte*>(start_); }

  // Only speed depends on it, so it may fail.
  void Advise(uint64_t offset, uint64_t bytes, int advice) const {
    madvise(static_cast<std::byte*>(start_) + offset, bytes, advice);
  }

 private:
  int descriptor_;
  void* start_;
  size_t bytes_;
};

// Reads and does not map: what was checked cannot change afterwards.
absl::StatusOr<SealedHeader> ReadHeader(int descriptor, uint64_t file_bytes, const std::string& path) {
  SealedHeader header;
  header.magic = {};
  const ssize_t got = pread(descriptor, &header, sizeof(header), 0);
  if (got < 0) {
    return CannotOpen(path, errno);
  }
  if (header.magic != kSealedMagic) {
    return Damaged(path, kHeaderName, "it is not that of a sealed graph");
  }
  if (std::min(static_cast<uint64_t>(got), file_bytes) < sizeof(header)) {
    return Damaged(path, kHeaderName, "the file ends within it");
  }
  if (header.checksum != ChecksumOf(header)) {
    return Damaged(path, kHeaderName, "the checksum does not match");
  }
  if (header.version > kSealedVersion) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, v1::STORE_CORRUPT,
        absl::StrCat("the file has version ", header.version, " of the sealed format, and this program knows up to ",
                     kSealedVersion, "; use a newer program"),
        {{"resource", path}, {"section", std::string(kHeaderName)}});
  }
  return header;
}

PublicSizes SizesOf(const SealedHeader& header) {
  return {header.node_count, header.feature_count, header.class_count};
}

// A header with a right checksum must still agree with itself and with the file.
absl::Status CheckLayout(const SealedHeader& header, uint64_t file_bytes, const std::string& path) {
  if (header.version != kSealedVersion || !FitsSealedFile(SizesOf(header))) {
    return Damaged(path, kHeaderName, "its version or sizes are out of range");
  }
  std::array<uint64_t, kSectionCount> lengths = {};
  uint64_t next = kSealedPageBytes;
  for (size_t i = 0; i < kSectionCount; ++i) {
    const SealedSection& section = header.sections[i];
    lengths[i] = section.bytes;
    if (section.offset != next) {
      return Damaged(path, kSectionNames[i], "it does not begin where the section before it ends");
    }
    // Written so that no sum overflows: `next` is at most the file's length, and a length fits 63 bits.
    if (section.bytes > file_bytes - next || RoundUpToPage(section.bytes) > file_bytes - next) {
      return Damaged(path, kSectionNames[i], "the file ends within it");
    }
    next += RoundUpToPage(section.bytes);
  }
  if (next != file_bytes) {
    return Damaged(path, kWholeFile, "there are bytes after its last section");
  }
  if (const std::optional<Section> misfit = FindMisfit(SizesOf(header), lengths); misfit.has_value()) {
    return Damaged(path, NameOf(*misfit), "its length does not fit the graph's sizes");
  }
  return absl::OkStatus();
}

// Whether `good` says true of every block of 0..count-1, asked on all threads. False also when told to stop.
bool GoodBlocks(int64_t count, KeepGoing& keep_going, const std::function<bool(int64_t first, int64_t last)>& good) {
  std::atomic<bool> all = true;
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  ParallelFor(blocks, HardwareThreads(), [&](int /*worker*/, int64_t block) {
    if (all && !(keep_going() && good(block * kBlock, std::min(count, (block + 1) * kBlock)))) {
      all = false;
    }
  });
  return all;
}

template <typename Entry, typename IsGood>
bool GoodEntries(std::span<const Entry> entries, KeepGoing& keep_going, const IsGood& is_good) {
  return GoodBlocks(static_cast<int64_t>(entries.size()), keep_going, [&](int64_t first, int64_t last) {
    bool good = true;
    for (int64_t i = first; i < last; ++i) {
      good &= is_good(entries[static_cast<size_t>(i)]);
    }
    return good;
  });
}

bool GoodOffsets(std::span<const int64_t> offsets, size_t entries, KeepGoing& keep_going) {
  return offsets.front() == 0 && offsets.back() == static_cast<int64_t>(entries) &&
         GoodBlocks(static_cast<int64_t>(offsets.size()) - 1, keep_going, [&](int64_t first, int64_t last) {
           bool good = true;
           for (int64_t i = first; i < last; ++i) {
             good &= offsets[static_cast<size_t>(i)] <= offsets[static_cast<size_t>(i) + 1];
           }
           return good;
         });
}

enum class OwnColumn { kAllowed, kForbidden };

// Whether every row is strictly ascending in 0..limit-1, without its own number where forbidden. Needs good offsets.
bool GoodRows(std::span<const int64_t> offsets, std::span<const int32_t> columns, int64_t limit, OwnColumn own,
              KeepGoing& keep_going) {
  const std::function<bool()> ask = std::ref(keep_going);
  return GoodBlocks(static_cast<int64_t>(offsets.size()) - 1, keep_going, [&](int64_t first, int64_t last) {
    Pace pace(ask);
    bool good = true;
    for (int64_t row = first; row < last; ++row) {
      if (!pace.GoOn(offsets[static_cast<size_t>(row) + 1] - offsets[static_cast<size_t>(row)])) {
        return false;
      }
      const int64_t forbidden = own == OwnColumn::kForbidden ? row : -1;
      int32_t previous = -1;
      for (int64_t at = offsets[static_cast<size_t>(row)]; at < offsets[static_cast<size_t>(row) + 1]; ++at) {
        const int32_t column = columns[static_cast<size_t>(at)];
        good &= column > previous;
        good &= column != forbidden;
        previous = column;
      }
      good &= previous < limit;
    }
    return good;
  });
}

}  // namespace

struct SealedGraph::State {
  struct Verdict {
    Mutex mutex;
    std::optional<absl::Status> status ABSL_GUARDED_BY(mutex);
  };

  std::string path;
  SealedHeader header;
  PublicSizes sizes;
  Mapping mapping;
  std::array<Verdict, kSectionCount> verdicts;

  State(std::string file, const SealedHeader& checked, Mapping mapped)
      : path(std::move(file)), header(checked), sizes(SizesOf(checked)), mapping(std::move(mapped)) {}

  template <typename Entry>
  [[nodiscard]] std::span<const Entry> EntriesOf(Section section) const {
    const SealedSection& place = header.sections[static_cast<size_t>(section)];
    return {reinterpret_cast<const Entry*>(mapping.start() + place.offset), place.bytes / sizeof(Entry)};
  }

  // The section's verdict, or CANCELLED.
  absl::Status Verify(Section section, KeepGoing& keep_going);
  // Their results mean nothing once told to stop.
  absl::Status VerifySection(Section section, KeepGoing& keep_going);
  [[nodiscard]] absl::Status VerifyBytes(Section section, KeepGoing& keep_going) const;
  [[nodiscard]] absl::Status VerifyStructure(Section section, KeepGoing& keep_going) const;
  absl::StatusOr<EdgesView> Edges(KeepGoing& keep_going);
  absl::StatusOr<GraphView> View(KeepGoing& keep_going);
};

absl::Status SealedGraph::State::Verify(Section section, KeepGoing& keep_going) {
  Verdict& verdict = verdicts[static_cast<size_t>(section)];
  const MutexLock lock(&verdict.mutex);
  if (!verdict.status.has_value()) {
    absl::Status status = VerifySection(section, keep_going);
    if (keep_going.stopped()) {
      return absl::CancelledError("the graph was not verified to its end");
    }
    verdict.status = std::move(status);
  }
  return *verdict.status;
}

absl::Status SealedGraph::State::VerifySection(Section section, KeepGoing& keep_going) {
  // Columns are only looked at through offsets that are good.
  if (section == Section::kNeighbours) {
    DPAR_RETURN_IF_ERROR(Verify(Section::kEdgeOffsets, keep_going));
  } else if (section == Section::kFeatureColumns) {
    DPAR_RETURN_IF_ERROR(Verify(Section::kFeatureOffsets, keep_going));
  }
  // The kernel may read further ahead here. Asking for a whole section larger than memory would push out other pages.
  const SealedSection& place = header.sections[static_cast<size_t>(section)];
  mapping.Advise(place.offset, place.bytes, MADV_SEQUENTIAL);
  const absl::Cleanup as_before = [&] { mapping.Advise(place.offset, place.bytes, MADV_NORMAL); };
  DPAR_RETURN_IF_ERROR(VerifyBytes(section, keep_going));
  return VerifyStructure(section, keep_going);
}

// Reads the file, not the mapping: a failing disk is then an error, where touching a page would end the process.
absl::Status SealedGraph::State::VerifyBytes(Section section, KeepGoing& keep_going) const {
  const SealedSection& place = header.sections[static_cast<size_t>(section)];
  std::vector<std::byte> chunk(std::min<uint64_t>(kChunkBytes, RoundUpToPage(place.bytes)));
  ChecksumStream checksum;
  bool padded = true;
  for (uint64_t done = 0; done < RoundUpToPage(place.bytes) && keep_going();) {
    const ssize_t got =
        pread(mapping.descriptor(), chunk.data(), std::min<uint64_t>(chunk.size(), RoundUpToPage(place.bytes) - done),
              static_cast<off_t>(place.offset + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return Damaged(path, NameOf(section), "the disk does not give its bytes");
    }
    const auto bytes = std::span<const std::byte>(chunk).first(static_cast<size_t>(got));
    const auto content = bytes.first(std::min<uint64_t>(bytes.size(), place.bytes - std::min(done, place.bytes)));
    checksum.Add(content);
    const auto padding = bytes.subspan(content.size());
    padded &= std::all_of(padding.begin(), padding.end(), [](std::byte byte) { return byte == std::byte{0}; });
    done += bytes.size();
  }
  if (checksum.Checksum() != place.checksum) {
    return Damaged(path, NameOf(section), "the checksum does not match");
  }
  return padded ? absl::OkStatus() : Damaged(path, NameOf(section), "the bytes behind it are not zero");
}

absl::Status SealedGraph::State::VerifyStructure(Section section, KeepGoing& keep_going) const {
  const auto neighbours = EntriesOf<int32_t>(Section::kNeighbours);
  const auto columns = EntriesOf<int32_t>(Section::kFeatureColumns);
  bool good = false;
  absl::string_view fault;
  switch (section) {
    case Section::kEdgeOffsets:
    case Section::kFeatureOffsets:
      good = GoodOffsets(EntriesOf<int64_t>(section),
                         section == Section::kEdgeOffsets ? neighbours.size() : columns.size(), keep_going);
      fault = "its entries are not the offsets of rows";
      break;
    case Section::kNeighbours:
      good = GoodRows(EntriesOf<int64_t>(Section::kEdgeOffsets), neighbours, sizes.node_count, OwnColumn::kForbidden,
                      keep_going);
      fault = "a row is out of order, names a node that there is not, or names its own";
      break;
    case Section::kFeatureColumns:
      good = GoodRows(EntriesOf<int64_t>(Section::kFeatureOffsets), columns, sizes.feature_count, OwnColumn::kAllowed,
                      keep_going);
      fault = "a row is out of order or names a column that there is not";
      break;
    case Section::kFeatureValues:
      good = GoodEntries(EntriesOf<float>(section), keep_going,
                         [](float value) { return std::isfinite(value) && value != 0; });
      fault = "a value is zero or not finite";
      break;
    case Section::kLabels:
      good = GoodEntries(EntriesOf<int32_t>(section), keep_going,
                         [this](int32_t label) { return label >= kUnlabelled && label < sizes.class_count; });
      fault = "a label names a class that there is not";
      break;
  }
  return good ? absl::OkStatus() : Damaged(path, NameOf(section), fault);
}

absl::StatusOr<EdgesView> SealedGraph::State::Edges(KeepGoing& keep_going) {
  DPAR_RETURN_IF_ERROR(Verify(Section::kEdgeOffsets, keep_going));
  DPAR_RETURN_IF_ERROR(Verify(Section::kNeighbours, keep_going));
  return EdgesView{EntriesOf<int64_t>(Section::kEdgeOffsets), EntriesOf<int32_t>(Section::kNeighbours)};
}

absl::StatusOr<GraphView> SealedGraph::State::View(KeepGoing& keep_going) {
  GraphView view;
  view.sizes = sizes;
  DPAR_ASSIGN_OR_RETURN(view.edges, Edges(keep_going));
  for (const Section section :
       {Section::kFeatureOffsets, Section::kFeatureColumns, Section::kFeatureValues, Section::kLabels}) {
    DPAR_RETURN_IF_ERROR(Verify(section, keep_going));
  }
  view.features = {EntriesOf<int64_t>(Section::kFeatureOffsets), EntriesOf<int32_t>(Section::kFeatureColumns),
                   EntriesOf<float>(Section::kFeatureValues)};
  view.labels = EntriesOf<int32_t>(Section::kLabels);
  return view;
}

SealedGraph::SealedGraph(std::unique_ptr<State> state) : state_(std::move(state)) {}
SealedGraph::SealedGraph(SealedGraph&& other) noexcept = default;
SealedGraph& SealedGraph::operator=(SealedGraph&& other) noexcept = default;
SealedGraph::~SealedGraph() = default;

absl::StatusOr<SealedGraph> SealedGraph::Open(const std::string& path) {
  // Non-blocking, so that a path that names a pipe does not hang.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return CannotOpen(path, errno);
  }
  absl::Cleanup close_it = [descriptor] { close(descriptor); };
  struct stat facts = {};
  if (fstat(descriptor, &facts) != 0) {
    return CannotOpen(path, errno);
  }
  if (!S_ISREG(facts.st_mode)) {
    return Damaged(path, kWholeFile, "it is not a regular file");
  }
  const auto file_bytes = static_cast<size_t>(facts.st_size);
  DPAR_ASSIGN_OR_RETURN(const SealedHeader header, ReadHeader(descriptor, file_bytes, path));
  DPAR_RETURN_IF_ERROR(CheckLayout(header, file_bytes, path));
  void* start = mmap(nullptr, file_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  if (start == MAP_FAILED) {
    return CannotOpen(path, errno);
  }
  std::move(close_it).Cancel();
  return SealedGraph(std::make_unique<State>(path, header, Mapping(descriptor, start, file_bytes)));
}

const PublicSizes& SealedGraph::sizes() const { return state_->sizes; }

absl::StatusOr<EdgesView> SealedGraph::Edges() const {
  KeepGoing to_the_end([] { return true; });
  return state_->Edges(to_the_end);
}

absl::StatusOr<GraphView> SealedGraph::View(const std::function<bool()>& keep_going) const {
  KeepGoing until_told(keep_going);
  return state_->View(until_told);
}

absl::Status SealedGraph::Check() const { return View().status(); }

bool IsSealedGraph(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return false;
  }
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  std::array<char, kSealedMagic.size()> start = {};
  return pread(descriptor, start.data(), start.size(), 0) == static_cast<ssize_t>(start.size()) &&
         start == kSealedMagic;
}

}  // namespace dpar
