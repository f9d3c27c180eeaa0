// The public graphs of the paper's experiments.
#ifndef DPAR_TESTS_LAB_STUDY_GRAPH_H_
#define DPAR_TESTS_LAB_STUDY_GRAPH_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "tests/lab/graph_input.h"

namespace dpar::lab {

struct StudyGraphTraits {
  const char* name;   // of the file, without its ending
  const char* title;  // as the paper writes it
  double delta;       // the paper's
};

// Those of the paper's five that are there as files.
std::span<const StudyGraphTraits> KnownStudyGraphs();

// "cora_ml, coauthor_cs, ..."
std::string StudyGraphNames();

struct StudyGraph {
  StudyGraphTraits traits;
  std::string digest;  // of the file: 16 hexadecimal digits. It finds another file, not a forged one.
  std::unique_ptr<GraphInput> input;
  GraphView view;  // of *input
  // The degree promise that methods which read edges are priced by: the graph's own largest degree. That is a promise
  // made after looking, which only a public graph allows.
  int64_t max_degree = 0;
};

// INVALID_FIELD `datasets` for a name that is not known, and `graph` for a file below `directory` that is not there.
absl::StatusOr<StudyGraph> OpenStudyGraph(const std::string& directory, const std::string& name);
absl::StatusOr<std::vector<StudyGraph>> OpenStudyGraphs(const std::string& directory,
                                                        const std::vector<std::string>& names);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_STUDY_GRAPH_H_
