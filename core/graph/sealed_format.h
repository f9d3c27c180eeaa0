// The bytes of a sealed graph, for its writer and its reader.
//   0      magic, format version
//   16     N, d, c
//   40     six sections: offset, length in bytes, XXH3-128
//   232    zeros
//   4080   XXH3-128 of the 4080 bytes before it
//   4096   the sections, in the order of Section, each from a multiple of 4096 on; zeros up to the next multiple
// Numbers are little-endian. Later versions keep magic, version and the place of the header's checksum, so that an
// older program can tell a newer file from a damaged one. Checksums find accidents, not tampering.
#ifndef DPAR_CORE_GRAPH_SEALED_FORMAT_H_
#define DPAR_CORE_GRAPH_SEALED_FORMAT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "core/graph/graph.h"

struct XXH3_state_s;  // xxHash's

namespace dpar {

static_assert(std::endian::native == std::endian::little, "sealed graphs are read as little-endian memory");

inline constexpr std::array<char, 8> kSealedMagic = {'\x89', 'D', 'P', 'A', 'R', '\r', '\n', '\x1a'};
inline constexpr uint64_t kSealedVersion = 1;
// Sections begin at multiples of it, so that each can be mapped and advised on alone.
inline constexpr uint64_t kSealedPageBytes = 4096;

enum class Section : size_t {
  kEdgeOffsets,     // int64, N + 1 entries
  kNeighbours,      // int32
  kFeatureOffsets,  // int64, N + 1 entries
  kFeatureColumns,  // int32
  kFeatureValues,   // float, as many as columns
  kLabels,          // int32, N entries
};
inline constexpr size_t kSectionCount = 6;
inline constexpr std::array<absl::string_view, kSectionCount> kSectionNames = {
    "edge_offsets", "neighbours", "feature_offsets", "feature_columns", "feature_values", "labels"};
// Stands for the header where a section's name would.
inline constexpr absl::string_view kHeaderName = "header";

struct SealedChecksum {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const SealedChecksum&) const = default;
};

struct SealedSection {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  SealedChecksum checksum;
};

struct SealedHeader {
  std::array<char, 8> magic = kSealedMagic;
  uint64_t version = kSealedVersion;
  int64_t node_count = 0;
  int64_t feature_count = 0;
  int64_t class_count = 0;
  std::array<SealedSection, kSectionCount> sections = {};
  std::array<char, 3848> zeros = {};
  SealedChecksum checksum;
};
static_assert(sizeof(SealedHeader) == kSealedPageBytes && offsetof(SealedHeader, checksum) == 4080);
static_assert(std::is_trivially_copyable_v<SealedHeader>);

constexpr uint64_t RoundUpToPage(uint64_t bytes) {
  return (bytes + kSealedPageBytes - 1) / kSealedPageBytes * kSealedPageBytes;
}

class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(const ChecksumStream&) = delete;
  ChecksumStream& operator=(const ChecksumStream&) = delete;

  void Add(std::span<const std::byte> bytes);
  [[nodiscard]] SealedChecksum Checksum() const;

 private:
  XXH3_state_s* state_;
};

SealedChecksum ChecksumOf(const void* data, size_t bytes);
// What belongs into header.checksum.
SealedChecksum ChecksumOf(const SealedHeader& header);

// Whether ids of nodes, feature columns and classes fit 32 bits.
bool FitsSealedFile(const PublicSizes& sizes);

// A section whose length does not fit a graph of these sizes, if any. FitsSealedFile must hold.
std::optional<Section> FindMisfit(const PublicSizes& sizes, const std::array<uint64_t, kSectionCount>& bytes);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_SEALED_FORMAT_H_
