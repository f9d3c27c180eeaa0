#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "absl/cleanup/cleanup.h"
#include "core/atomic_file.h"
#include "core/graph/graph_error.h"
#include "core/graph/sealed_format.h"
#include "core/graph/sealed_graph.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// Small enough to stay in a cache between its checksum and its way to the kernel.
constexpr size_t kChunkBytes = 1 << 18;

using Bytes = std::span<const std::byte>;

std::array<Bytes, kSectionCount> SectionsOf(const GraphView& graph) {
  return {std::as_bytes(graph.edges.offsets),    std::as_bytes(graph.edges.neighbours),
          std::as_bytes(graph.features.offsets), std::as_bytes(graph.features.columns),
          std::as_bytes(graph.features.values),  std::as_bytes(graph.labels)};
}

// Offsets and lengths; checksums follow.
absl::StatusOr<SealedHeader> LayOut(const PublicSizes& sizes, const std::array<Bytes, kSectionCount>& sections) {
  if (!FitsSealedFile(sizes)) {
    return GraphError(kWholeFile, "has a size that does not fit 32 bits");
  }
  SealedHeader header;
  header.node_count = sizes.node_count;
  header.feature_count = sizes.feature_count;
  header.class_count = sizes.class_count;
  std::array<uint64_t, kSectionCount> lengths = {};
  uint64_t next = kSealedPageBytes;
  for (size_t i = 0; i < kSectionCount; ++i) {
    lengths[i] = sections[i].size();
    header.sections[i].offset = next;
    header.sections[i].bytes = lengths[i];
    next += RoundUpToPage(lengths[i]);
  }
  if (const std::optional<Section> misfit = FindMisfit(sizes, lengths); misfit.has_value()) {
    return GraphError(kSectionNames[static_cast<size_t>(*misfit)], "has a length that does not fit the graph's sizes");
  }
  return header;
}

absl::Status WriteAt(int descriptor, const std::string& path, uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) {
      return WriteError(path, std::strerror(errno));
    }
    const size_t done = written > 0 ? static_cast<size_t>(written) : 0;
    offset += done;
    bytes = bytes.subspan(done);
  }
  return absl::OkStatus();
}

struct Output {
  int descriptor = -1;
  const std::string& path;
  const StageReport& report;
  double total_bytes = 0;
};

absl::Status WriteSection(const Output& output, Bytes bytes, SealedSection& section) {
  const int descriptor = output.descriptor;
  const std::string& path = output.path;
  ChecksumStream checksum;
  for (size_t done = 0; done < bytes.size(); done += kChunkBytes) {
    const Bytes chunk = bytes.subspan(done, std::min(kChunkBytes, bytes.size() - done));
    checksum.Add(chunk);
    DPAR_RETURN_IF_ERROR(WriteAt(descriptor, path, section.offset + done, chunk));
    const uint64_t end = section.offset + done + chunk.size();
    if (!output.report(static_cast<double>(end) / output.total_bytes)) {
      return absl::CancelledError("sealing the graph was stopped");
    }
  }
  section.checksum = checksum.Checksum();
  static constexpr std::array<std::byte, kSealedPageBytes> kZeros = {};
  const uint64_t padding = RoundUpToPage(section.bytes) - section.bytes;
  return WriteAt(descriptor, path, section.offset + section.bytes, Bytes(kZeros).first(padding));
}

}  // namespace

absl::Status WriteSealedGraph(const std::string& path, const GraphView& graph, const StageReport& report) {
  const std::array<Bytes, kSectionCount> sections = SectionsOf(graph);
  DPAR_ASSIGN_OR_RETURN(SealedHeader header, LayOut(graph.sizes, sections));
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  const int descriptor = open(file.temporary_path().c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return WriteError(path, std::strerror(errno));
  }
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  const SealedSection& last = header.sections.back();
  const Output output{descriptor, path, report, static_cast<double>(last.offset + last.bytes)};
  for (size_t i = 0; i < kSectionCount; ++i) {
    DPAR_RETURN_IF_ERROR(WriteSection(output, sections[i], header.sections[i]));
  }
  header.checksum = ChecksumOf(header);
  DPAR_RETURN_IF_ERROR(WriteAt(descriptor, path, 0, std::as_bytes(std::span(&header, 1))));
  return file.Commit();
}

}  // namespace dpar
