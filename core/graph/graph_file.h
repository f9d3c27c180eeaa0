// Graph files in the gnn-benchmark npz layout: adj_{data,indices,indptr,shape}, attr_{data,indices,indptr,shape},
// labels, and optionally num_classes. The spelling adj_matrix.data (and so on) is read too. Reading takes at most 1.5
// times the memory of the graph with its repeated edges, self loops and stored zeros: arrays come in chunks, edges
// become canonical in place, and a dense matrix is read twice. Time O(nodes + entries * log(longest row)).
#ifndef DPAR_CORE_GRAPH_GRAPH_FILE_H_
#define DPAR_CORE_GRAPH_GRAPH_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/npz.h"
#include "core/graph/size_bounds.h"
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

// Progress by stage: arrays are read first, then made canonical.
struct ReadReports {
  StageReport parsing = AlwaysGoOn;
  StageReport validating = AlwaysGoOn;
};

// Reads, validates and canonicalises: edges symmetrised, duplicates merged, self loops dropped; weights must be equal.
// With `declared`, the file must have these sizes (labels: below the class count); else the class count is num_classes,
// or the highest label + 1, which is for the caller's own eyes. A dense attr_matrix or attr (rows x features) is read
// too; other arrays are not. Errors hold no value of the file: INVALID_ARGUMENT / INVALID_GRAPH (metadata: array,
// position), RESOURCE_EXHAUSTED / LIMIT_EXCEEDED, NOT_FOUND if it cannot be opened, CANCELLED in milliseconds once a
// report says no.
absl::StatusOr<ImportedGraph> ReadGraphFile(const std::string& path, const GraphLimits& limits,
                                            const std::optional<PublicSizes>& declared,
                                            const ReadReports& reports = {});

// The public sizes of a file that is to be uploaded or rewritten: nodes and features from the shape arrays, classes as
// stated here or else by num_classes. No label is read, because a count of classes tells of a class's only node.
// INVALID_ARGUMENT / INVALID_GRAPH (array: num_classes) when nothing states them.
absl::StatusOr<PublicSizes> ReadGraphSizes(const std::string& path, const GraphLimits& limits,
                                           std::optional<int64_t> classes);

// How many edges (in whichever direction they stand) and feature entries the file stores: at least as many as the graph
// has, which only reading it tells. Reads shapes alone.
absl::StatusOr<SizeBounds> ReadStoredCounts(const std::string& path, const GraphLimits& limits);

// Writes a canonical graph; ReadGraphFile gives it back exactly, if it is within the limits.
absl::Status WriteGraphFile(const std::string& path, const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPH_FILE_H_
