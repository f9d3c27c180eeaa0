// Sealed graphs as bytes that tests change.
#ifndef DPAR_CORE_GRAPH_TESTING_SEALED_BYTES_H_
#define DPAR_CORE_GRAPH_TESTING_SEALED_BYTES_H_

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/sealed_format.h"
#include "core/graph/sealed_graph.h"
#include "core/graph/testing/npz_fixture.h"
#include "gtest/gtest.h"

namespace dpar::testing {

inline constexpr absl::string_view kTail = "; the file is damaged, restore it from a backup";

// Five nodes, one of them alone; four feature columns, one row empty; three classes.
inline Graph SmallGraph() {
  Graph graph;
  graph.sizes = {5, 4, 3};
  graph.edge_offsets = {0, 2, 4, 7, 8, 8};
  graph.neighbours = {1, 2, 0, 2, 0, 1, 3, 2};
  graph.features.offsets = {0, 2, 3, 3, 5, 6};
  graph.features.columns = {0, 3, 1, 0, 2, 3};
  graph.features.values = {1.0F, -2.5F, 0.125F, 3.0F, std::numeric_limits<float>::denorm_min(), 1e38F};
  graph.labels = {0, 2, kUnlabelled, 1, 2};
  return graph;
}

// A cycle, with a feature and a label for every node.
inline Graph Cycle(int32_t nodes) {
  Graph graph;
  graph.sizes = {nodes, 2, 2};
  for (int32_t node = 0; node < nodes; ++node) {
    const int32_t before = (node + nodes - 1) % nodes;
    const int32_t after = (node + 1) % nodes;
    graph.neighbours.push_back(std::min(before, after));
    graph.neighbours.push_back(std::max(before, after));
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
    graph.features.columns.push_back(node % 2);
    graph.features.values.push_back(1.0F + static_cast<float>(node));
    graph.features.offsets.push_back(node + 1);
    graph.labels.push_back(node % 2);
  }
  return graph;
}

template <typename Entry>
std::vector<Entry> Copy(std::span<const Entry> entries) {
  return {entries.begin(), entries.end()};
}

inline Graph Copy(const GraphView& view) {
  Graph graph;
  graph.sizes = view.sizes;
  graph.edge_offsets = Copy(view.edges.offsets);
  graph.neighbours = Copy(view.edges.neighbours);
  graph.features = {Copy(view.features.offsets), Copy(view.features.columns), Copy(view.features.values)};
  graph.labels = Copy(view.labels);
  return graph;
}

inline std::string SealedBytes(const Graph& graph) {
  const std::string path = TestPath("whole.sealed");
  EXPECT_EQ(WriteSealedGraph(path, graph), absl::OkStatus());
  return ReadBytes(path);
}

inline SealedHeader HeaderOf(const std::string& bytes) {
  SealedHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

inline void SetHeader(std::string& bytes, const SealedHeader& header) {
  std::memcpy(bytes.data(), &header, sizeof(header));
}

// The first byte of a section.
inline size_t StartOf(const std::string& bytes, Section section) {
  return HeaderOf(bytes).sections[static_cast<size_t>(section)].offset;
}

// Changes the header and makes its checksum right again.
inline void ChangeHeader(std::string& bytes, const std::function<void(SealedHeader&)>& change) {
  SealedHeader header = HeaderOf(bytes);
  change(header);
  header.checksum = ChecksumOf(header);
  SetHeader(bytes, header);
}

// Sets one entry and makes the checksums right again, as somebody would who wants a reader to go astray.
template <typename Entry>
void SetEntry(std::string& bytes, Section section, size_t position, Entry value) {
  std::memcpy(bytes.data() + StartOf(bytes, section) + position * sizeof(Entry), &value, sizeof(value));
  ChangeHeader(bytes, [&](SealedHeader& header) {
    SealedSection& place = header.sections[static_cast<size_t>(section)];
    place.checksum = ChecksumOf(bytes.data() + place.offset, place.bytes);
  });
}

inline absl::StatusOr<SealedGraph> OpenBytes(const std::string& bytes) {
  const std::string path = TestPath("changed.sealed");
  WriteBytes(path, bytes);
  return SealedGraph::Open(path);
}

// The first fault that opening and checking find.
inline absl::Status Fault(const std::string& bytes) {
  const absl::StatusOr<SealedGraph> graph = OpenBytes(bytes);
  return graph.ok() ? graph->Check() : graph.status();
}

// "DATA_LOSS STORE_CORRUPT neighbours": code, reason and section.
inline std::string Verdict(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  if (!info.has_value()) {
    return absl::StatusCodeToString(status.code());
  }
  const auto section = info->metadata().find("section");
  return absl::StrCat(absl::StatusCodeToString(status.code()), " ", info->reason(), " ",
                      section == info->metadata().end() ? "(none)" : section->second);
}

inline std::string DamagedIn(absl::string_view section) { return absl::StrCat("DATA_LOSS STORE_CORRUPT ", section); }

}  // namespace dpar::testing

#endif  // DPAR_CORE_GRAPH_TESTING_SEALED_BYTES_H_
