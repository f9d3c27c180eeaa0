// Predictions in a file: a class and its probability for each node.
//   .csv    node,class,probability            a header, then a line for each node
//   .jsonl  {"node":0,"class":2,"probability":0.93}
//   .npz    class (int32) and probability (float32), in the order of the nodes
// With names, `id` and the node's id stand in the place of `node` and its number, and a class goes by its name; an npz
// has node_ids and class_names besides.
#ifndef DPAR_CLIENT_CLI_PREDICTION_FILE_H_
#define DPAR_CLIENT_CLI_PREDICTION_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph_names.h"
#include "core/infer/predict.h"

namespace dpar {

enum class PredictionFormat { kCsv, kNpz, kJsonLines };

// `format` ("csv", "npz", "jsonl"), or the file's ending when that is empty. INVALID_FIELD for anything else.
absl::StatusOr<PredictionFormat> ParsePredictionFormat(const std::string& format, const std::string& path);

// Writes a temporary file and renames it in Finish.
class PredictionWriter {
 public:
  virtual ~PredictionWriter() = default;
  // Predictions of the next nodes, in order.
  virtual absl::Status Add(std::span<const Prediction> predictions) = 0;
  virtual absl::Status Finish() = 0;
};
// `names` outlives the writer.
absl::StatusOr<std::unique_ptr<PredictionWriter>> OpenPredictionWriter(const std::string& path, PredictionFormat format,
                                                                       const GraphNames& names);

// One prediction for each of `nodes` nodes, once. The ending says the format; a csv or jsonl that names ids needs the
// ids of the graph. INVALID_ARGUMENT names line or array.
absl::StatusOr<std::vector<Prediction>> ReadPredictions(const std::string& path, int64_t nodes,
                                                        const GraphNames& names);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_PREDICTION_FILE_H_
