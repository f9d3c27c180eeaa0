// The released model and its torch-free file.
#ifndef DPAR_CORE_INFER_MODEL_H_
#define DPAR_CORE_INFER_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

enum class ModelInputs {
  kFeatures,       // a node's own features (core/infer/input_rows.h)
  kNeighbourMean,  // those and the mean over its neighbours (core/infer/edge_inputs.h): method sage
  kHops,           // its encoding, and sums over neighbours for some hops: method gap
};

// A softmax model: logits = z W or, with hidden units, relu(z W) V. The last input is the bias. All of it is public.
struct Model {
  v1::Transform transform = v1::SQRT_UNIT;
  int64_t feature_count = 0;          // d
  int64_t class_count = 0;            // c
  int64_t hidden_size = 0;            // h; 0 is none
  std::vector<float> center;          // m, d entries; empty: there is none
  std::vector<float> weights;         // W, (inputs + 1) x (h or c), row-major; the last row is the bias
  std::vector<float> output_weights;  // V, h x c, row-major; empty without a hidden layer
  std::vector<float> class_shares;    // P, c entries that sum to 1 (core/train/class_shares.h); empty: not released
  double share_noise = 0;             // standard deviation of the noise in an entry of P; 0 without P
  double logit_noise = 0;             // standard deviation of the noise in a logit (Plan.logit_noise)
  std::string plan = "{}";            // the plan as a JSON object
  std::string schema;                 // of the tables it was trained on (core/table), as JSON; empty: none
  ModelInputs reads = ModelInputs::kFeatures;
  int64_t hops = 0;                    // kHops only: sums over neighbours, at least 1
  int64_t encoder_size = 0;            // kHops only: columns of the encoder's weights
  std::vector<float> encoder_weights;  // kHops only: (d + 1) x encoder_size, row-major; the last row is the bias

  [[nodiscard]] int64_t input_count() const {
    if (reads == ModelInputs::kHops) {
      return (hops + 1) * encoder_size;
    }
    return reads == ModelInputs::kNeighbourMean ? 2 * feature_count : feature_count;
  }
  [[nodiscard]] int64_t width() const { return hidden_size > 0 ? hidden_size : class_count; }
};

// INVALID_ARGUMENT / INVALID_FIELD `model` unless sizes agree, numbers are finite, and plan is a JSON object.
absl::Status ValidateModel(const Model& model);

// {"format": 1, "transform": ..., "logit_noise": ..., "share_noise": ..., "reads": "features", "neighbour-mean" or
// "hops", "hops": ..., "plan": {...}}.
std::string ModelHeader(const Model& model);

// Writes an npz, atomically and deterministically: `header` (text) and float32 `weights`, and if present
// `output_weights`, `center`, `class_shares`, `encoder_weights` and `schema` (text).
absl::Status WriteModelFile(const std::string& path, const Model& model);

// Reads and validates it. INVALID_ARGUMENT / INVALID_FIELD `model` for an invalid file; NOT_FOUND for none.
absl::StatusOr<Model> ReadModelFile(const std::string& path);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_MODEL_H_
