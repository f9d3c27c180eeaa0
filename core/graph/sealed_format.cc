#include "core/graph/sealed_format.h"

#include <xxhash.h>

#include <limits>
#include <new>

namespace dpar {

ChecksumStream::ChecksumStream() : state_(XXH3_createState()) {
  if (state_ == nullptr) {
    throw std::bad_alloc();
  }
  XXH3_128bits_reset(state_);
}

ChecksumStream::~ChecksumStream() { XXH3_freeState(state_); }

void ChecksumStream::Add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_, bytes.data(), bytes.size()); }

SealedChecksum ChecksumStream::Checksum() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  return {hash.low64, hash.high64};
}

SealedChecksum ChecksumOf(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

SealedChecksum ChecksumOf(const SealedHeader& header) { return ChecksumOf(&header, offsetof(SealedHeader, checksum)); }

bool FitsSealedFile(const PublicSizes& sizes) {
  const auto fits = [](int64_t size) { return size >= 0 && size <= std::numeric_limits<int32_t>::max(); };
  return fits(sizes.node_count) && fits(sizes.feature_count) && fits(sizes.class_count);
}

std::optional<Section> FindMisfit(const PublicSizes& sizes, const std::array<uint64_t, kSectionCount>& bytes) {
  const auto nodes = static_cast<uint64_t>(sizes.node_count);
  const auto bytes_of = [&](Section section) { return bytes[static_cast<size_t>(section)]; };
  for (const Section offsets : {Section::kEdgeOffsets, Section::kFeatureOffsets}) {
    if (bytes_of(offsets) != (nodes + 1) * sizeof(int64_t)) {
      return offsets;
    }
  }
  for (const Section columns : {Section::kNeighbours, Section::kFeatureColumns}) {
    if (bytes_of(columns) % sizeof(int32_t) != 0) {
      return columns;
    }
  }
  if (bytes_of(Section::kFeatureValues) != bytes_of(Section::kFeatureColumns)) {
    return Section::kFeatureValues;
  }
  if (bytes_of(Section::kLabels) != nodes * sizeof(int32_t)) {
    return Section::kLabels;
  }
  return std::nullopt;
}

}  // namespace dpar
