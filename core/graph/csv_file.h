// Graphs in three text files, each plain or gzip and separated by commas, tabs, semicolons or spaces (csv_lines.h):
//   edges     source,target                 nodes are counted from 0
//   features  one line a node, in order     dense: as many numbers in each line
//             node,column,value             sparse: columns are counted from 0
//   labels    node,label                    or a label alone in each line, in the order of the nodes
// Files whose lines name nodes may begin with a header; dense features and labels alone may not. A label that is
// missing, empty or -1 is none. An empty line is an unlabelled node among labels alone, and refused among dense
// features. Memory: up to four times the graph.
#ifndef DPAR_CORE_GRAPH_CSV_FILE_H_
#define DPAR_CORE_GRAPH_CSV_FILE_H_

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

// Reads, validates and canonicalises. Nothing may lie beyond `declared`, and dense features must match it exactly:
// nodes or features of 0 are taken from their lines or columns. Nothing else is counted, which would tell of the node
// with the largest number. Refuses a node with two labels or a repeated column. Errors are those of ReadGraphFile, with
// "edges", "features" or "labels" as array and the line, from 1, as position.
absl::StatusOr<ImportedGraph> ReadCsvGraph(const CsvGraphFiles& files, const GraphLimits& limits,
                                           const PublicSizes& declared);

// graph.csv stands for graph.edges.csv, graph.features.csv and graph.labels.csv.
bool IsCsvName(absl::string_view path);
CsvGraphFiles CsvFilesOf(absl::string_view path);

// Writes each file atomically, with sparse features. ReadCsvGraph needs the sizes to give back exactly the same graph.
absl::Status WriteCsvGraph(const CsvGraphFiles& files, const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CSV_FILE_H_
