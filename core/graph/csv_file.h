// Graphs in three text files: edges, features and labels. Each is plain or gzip, with commas, tabs, semicolons or
// spaces between its fields; core/graph/csv_lines.h says what else its lines may hold.
//
//   edges     source,target                 nodes are counted from 0
//   features  one line a node, in order     dense: as many numbers in each line
//             node,column,value             sparse: columns are counted from 0
//   labels    node,label                    or a label alone in each line, in the order of the nodes
//
// Files whose lines name nodes may begin with a header; those that go by position (dense features, labels alone) may
// not. A node that the labels do not name, -1 and an empty label are no label. Where labels stand alone, an empty line
// is the node that has none; between the lines of dense features it is refused. Empty lines at the end say nothing.
//
// Edges and sparse features are collected in the order of the files and sorted by node at the end, which takes up to
// four times the memory of the graph. Time O(bytes + entries * log(longest row)).
#ifndef DPAR_CORE_GRAPH_CSV_FILE_H_
#define DPAR_CORE_GRAPH_CSV_FILE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph_file.h"

namespace dpar {

struct CsvGraphFiles {
  enum class FeatureForm { kDense, kSparse };

  std::string edges;
  std::string features;
  std::string labels;
  FeatureForm feature_form = FeatureForm::kDense;
};

// Reads, validates and canonicalises, as ReadGraphFile does. With `declared`, nothing may lie beyond those sizes, and
// dense features must have exactly them. Without it there are as many nodes as dense features have lines, or else as
// the largest number in any of the files says, and as many features and classes as the files name. A file without a
// line of data is refused, and so are a node that gets two labels and a column that a node has twice.
//
// Errors are INVALID_ARGUMENT / INVALID_GRAPH, with "edges", "features" or "labels" as array and the line, counted from
// 1, as position, or RESOURCE_EXHAUSTED / LIMIT_EXCEEDED; they hold no value of the files. NOT_FOUND when a file cannot
// be opened.
absl::StatusOr<ImportedGraph> ReadCsvGraph(const CsvGraphFiles& files, const GraphLimits& limits,
                                           const std::optional<PublicSizes>& declared);

// The files that stand for a graph in text, beside one another: graph.csv is graph.edges.csv, graph.features.csv and
// graph.labels.csv.
bool IsCsvName(absl::string_view path);
CsvGraphFiles CsvFilesOf(absl::string_view path);

// Writes the three, each atomically, with sparse features and a line for every label. ReadCsvGraph gives the graph back
// exactly when it is told the sizes; without them, columns and classes that no node has are unknown to it.
absl::Status WriteCsvGraph(const CsvGraphFiles& files, const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CSV_FILE_H_
