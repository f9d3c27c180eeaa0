// Graph files in the gnn-benchmark npz layout: adj_{data,indices,indptr,shape}, attr_{data,indices,indptr,shape},
// labels, and optionally num_classes. The spelling adj_matrix.data (and so on) is read too.
//
// Reading takes at most 1.5 times the memory of the graph, so that a machine can read whatever it can hold: arrays come
// in chunks and go straight to their places, edge weights are looked at and forgotten, edges are made canonical in
// place (core/graph/canonical_edges.h), and a dense feature matrix is read twice, first to count what is not zero, so
// that nothing has to grow. Repeated edges, self loops and stored zeros of the file count as part of the graph: they
// are held until they are dropped. Time O(nodes + entries * log(longest row)).
#ifndef DPAR_CORE_GRAPH_GRAPH_FILE_H_
#define DPAR_CORE_GRAPH_GRAPH_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/npz.h"
#include "core/stage.h"

namespace dpar {

struct GraphLimits {
  int64_t max_nodes = 20'000'000;
  int64_t max_features = 1'000'000;
  int64_t max_classes = 10'000;
  int64_t max_edges = 400'000'000;  // directed entries in the file
  int64_t max_feature_entries = 2'000'000'000;
  NpzLimits npz;
};

// What canonicalisation did. Counts of private content: for the uploader only, never stored or logged.
struct ImportReport {
  int64_t edge_count = 0;
  int64_t edges_symmetrised = 0;
  int64_t duplicates_merged = 0;
  int64_t self_loops_dropped = 0;
  int64_t unlabelled_nodes = 0;
  int64_t zero_features_dropped = 0;
};

struct ImportedGraph {
  Graph graph;
  ImportReport report;
  bool classes_counted = false;  // the class count is the highest label + 1, for want of a stated one
};

// How far reading is, stage by stage. Arrays are read first, then made canonical.
struct ReadReports {
  StageReport parsing = AlwaysGoOn;
  StageReport validating = AlwaysGoOn;
};

// Reads, validates and canonicalises. Directed edges are symmetrised, duplicates merged, self loops dropped; weights
// are refused unless all equal. With `declared`, the file must have exactly those sizes (class count: no label at or
// above it). Without it, the class count is num_classes of the file, or the highest label + 1. Errors are
// INVALID_ARGUMENT / INVALID_GRAPH (metadata: array, position), or RESOURCE_EXHAUSTED / LIMIT_EXCEEDED; they hold no
// value of the file. A dense attr_matrix or attr (rows x features) is read too. NOT_FOUND when the file cannot be
// opened. Arrays with other names are ignored, unread. CANCELLED, within milliseconds, once a report says no.
absl::StatusOr<ImportedGraph> ReadGraphFile(const std::string& path, const GraphLimits& limits,
                                            const std::optional<PublicSizes>& declared,
                                            const ReadReports& reports = {});

// Only the sizes, from the shape arrays, num_classes and the labels, without reading edges or features.
struct DeclaredSizes {
  PublicSizes sizes;
  bool classes_from_labels = false;  // true when the file carries no num_classes
};
absl::StatusOr<DeclaredSizes> ReadGraphSizes(const std::string& path, const GraphLimits& limits);

// Writes a canonical graph; ReadGraphFile gives it back exactly, if it is within the limits.
absl::Status WriteGraphFile(const std::string& path, const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPH_FILE_H_
