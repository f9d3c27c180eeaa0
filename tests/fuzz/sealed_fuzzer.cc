// Sealed graphs. An input that begins as one does is read as it is; any other is a list of changes to a good file,
// whose checksums are made right again, so that changes get past them to the structure.
//
// For any bytes the result is an error that names its reason, or a graph in which every offset, neighbour and column is
// within bounds.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/graph/sealed_format.h"
#include "core/graph/sealed_graph.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

std::string GoodFile() {
  Graph graph;
  graph.sizes = {5, 4, 3};
  graph.edge_offsets = {0, 2, 4, 7, 8, 8};
  graph.neighbours = {1, 2, 0, 2, 0, 1, 3, 2};
  graph.features.offsets = {0, 2, 3, 3, 5, 6};
  graph.features.columns = {0, 3, 1, 0, 2, 3};
  graph.features.values = {1.0F, -2.5F, 0.125F, 3.0F, 1e-40F, 1e38F};
  graph.labels = {0, 2, -1, 1, 2};
  const std::string path = (std::filesystem::temp_directory_path() / absl::StrCat("sealed_fuzzer_", getpid())).string();
  Require(WriteSealedGraph(path, graph).ok(), "a graph can be sealed");
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::filesystem::remove(path);
  return bytes.str();
}

// Only where the section lies in the file.
void RightChecksums(std::string& bytes) {
  SealedHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (SealedSection& section : header.sections) {
    if (section.offset <= bytes.size() && section.bytes <= bytes.size() - section.offset) {
      section.checksum = ChecksumOf(bytes.data() + section.offset, section.bytes);
    }
  }
  header.checksum = ChecksumOf(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
}

// Changes: a section or the header, a place in it, how many bytes, the bytes.
std::string Changed(FuzzInput input) {
  static const std::string good = GoodFile();
  std::string bytes = good;
  SealedHeader header;
  std::memcpy(&header, good.data(), sizeof(header));
  while (!input.empty()) {
    const size_t section = input.Choice(kSectionCount + 2);
    const size_t place = input.Read<uint16_t>();
    const std::string value = input.Take(1 + input.Choice(8));
    if (section == kSectionCount + 1) {
      bytes.resize(std::max(sizeof(header), bytes.size() - std::min(place, bytes.size())));
      continue;
    }
    const size_t start = section < kSectionCount ? header.sections[section].offset : 0;
    const size_t length = section < kSectionCount ? header.sections[section].bytes : sizeof(header);
    const size_t at = start + (length == 0 ? 0 : place % length);
    if (at + value.size() <= bytes.size()) {
      bytes.replace(at, value.size(), value);
    }
  }
  RightChecksums(bytes);
  return bytes;
}

bool AreOffsets(std::span<const int64_t> offsets, int64_t rows, size_t entries) {
  return offsets.size() == static_cast<size_t>(rows) + 1 && offsets.front() == 0 &&
         std::is_sorted(offsets.begin(), offsets.end()) && offsets.back() == static_cast<int64_t>(entries);
}

bool Within(std::span<const int32_t> entries, int64_t low, int64_t high) {
  return std::all_of(entries.begin(), entries.end(), [&](int32_t entry) { return entry >= low && entry < high; });
}

void Run(const uint8_t* data, size_t size) {
  const std::string raw(reinterpret_cast<const char*>(data), size);
  static const std::string good = GoodFile();
  const bool is_file = raw.size() > sizeof(SealedHeader) && raw.substr(0, 4) == good.substr(0, 4);
  const MemoryFile file(is_file ? raw : Changed(FuzzInput(data, size)));
  const absl::StatusOr<SealedGraph> sealed = SealedGraph::Open(file.path());
  const auto damaged = {absl::StatusCode::kDataLoss, absl::StatusCode::kFailedPrecondition};
  RequireJudged(sealed.status(), damaged);
  if (!sealed.ok()) {
    return;
  }
  const absl::StatusOr<GraphView> view = sealed->View();
  RequireJudged(view.status(), damaged);
  Require(view.ok() == sealed->Check().ok(), "both ways of checking agree");
  if (!view.ok()) {
    return;
  }
  const PublicSizes& sizes = view->sizes;
  Require(AreOffsets(view->edges.offsets, sizes.node_count, view->edges.neighbours.size()), "edge offsets fit");
  Require(Within(view->edges.neighbours, 0, sizes.node_count), "neighbours are nodes");
  Require(AreOffsets(view->features.offsets, sizes.node_count, view->features.columns.size()), "feature offsets fit");
  Require(view->features.values.size() == view->features.columns.size(), "every column has a value");
  Require(Within(view->features.columns, 0, sizes.feature_count), "columns are features");
  Require(view->labels.size() == static_cast<size_t>(sizes.node_count), "every node has a label");
  Require(Within(view->labels, -1, sizes.class_count), "labels are classes");
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(data, size);
  return 0;
}
