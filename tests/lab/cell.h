// One measurement of the lab: one plan, trained once on one split of one graph.
#ifndef DPAR_TESTS_LAB_CELL_H_
#define DPAR_TESTS_LAB_CELL_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "dpar/v1/training.pb.h"
#include "tests/lab/graph_split.h"

namespace dpar::lab {

// Everything that a result depends on but the noise.
struct Cell {
  std::string graph;   // the name of a study graph
  std::string digest;  // of its file
  SplitKind split = SplitKind::kRandom;
  int64_t seed = 1;  // of the split
  v1::TrainingSpec spec;
  int64_t promise = 0;  // D, for methods that read edges; 0: the graph's own largest degree
};

// What one line of a results file is found by.
nlohmann::ordered_json CellKey(const Cell& cell);

// Accuracies are counted on the labels of held-out nodes, by each of the inference rules.
struct CellResult {
  double none = 0;
  double power = 0;
  double mean_field = 0;
  std::optional<double> sound_epsilon;      // what the noise costs; nothing without noise
  std::optional<double> published_epsilon;  // what the paper says that it costs, where it was asked for
  double seconds = 0;                       // of training and prediction
};

nlohmann::ordered_json ResultJson(const CellResult& result);
// INVALID_ARGUMENT for JSON that ResultJson does not write.
absl::StatusOr<CellResult> ParseResult(const nlohmann::ordered_json& json);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_CELL_H_
