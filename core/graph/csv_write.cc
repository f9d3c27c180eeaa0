#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/graph/csv_file.h"
#include "core/graph/text_output.h"
#include "core/status_macros.h"

namespace dpar {

bool IsCsvName(absl::string_view path) { return absl::EndsWith(path, ".csv"); }

CsvGraphFiles CsvFilesOf(absl::string_view path) {
  const absl::string_view stem = absl::StripSuffix(path, ".csv");
  return {absl::StrCat(stem, ".edges.csv"), absl::StrCat(stem, ".features.csv"), absl::StrCat(stem, ".labels.csv"),
          CsvGraphFiles::FeatureForm::kSparse};
}

absl::Status WriteCsvGraph(const CsvGraphFiles& files, const GraphView& graph) {
  DPAR_ASSIGN_OR_RETURN(TextOutput edges, TextOutput::Create(files.edges));
  DPAR_ASSIGN_OR_RETURN(TextOutput features, TextOutput::Create(files.features));
  DPAR_ASSIGN_OR_RETURN(TextOutput labels, TextOutput::Create(files.labels));
  edges.Add("source,target\n");
  features.Add("node,column,value\n");
  labels.Add("node,label\n");
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    for (const int32_t neighbour : graph.edges.neighbours_of(node)) {
      if (neighbour > node) {
        edges.Add(absl::StrCat(node, ",", neighbour, "\n"));
      }
    }
    const auto columns = graph.features.row_columns(node);
    const auto values = graph.features.row_values(node);
    for (size_t i = 0; i < columns.size(); ++i) {
      features.Add(absl::StrFormat("%d,%d,%.9g\n", node, columns[i], static_cast<double>(values[i])));
    }
    labels.Add(absl::StrCat(node, ",", graph.labels[static_cast<size_t>(node)], "\n"));
  }
  DPAR_RETURN_IF_ERROR(edges.Finish());
  DPAR_RETURN_IF_ERROR(features.Finish());
  return labels.Finish();
}

}  // namespace dpar
