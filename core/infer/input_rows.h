// How a node's feature row x becomes the model's input z, in training and in prediction.
//
// phi is taken of every stored entry (Transform in training.proto). With u = phi(x) / |phi(x)|, or 0 where phi(x) = 0,
//   RAW             z = (phi(x), 0.1)
//   otherwise       z = (sqrt(0.99) u, 0.1)
//   with center m   z = (sqrt(0.99) (u - m) / |u - m|, 0.1), and (0, 0.1) where u = m.
// The last entry is the bias input. |z| <= 1 for all but RAW. Always z = (scale phi(x) - shift m, 0.1) for two numbers
// of the row, so u - m, which is dense, is never formed.
#ifndef DPAR_CORE_INFER_INPUT_ROWS_H_
#define DPAR_CORE_INFER_INPUT_ROWS_H_

#include <cstdint>
#include <span>

#include "dpar/v1/training.pb.h"

namespace dpar {

inline constexpr double kRowScale = 0.99498743710661995;  // sqrt(0.99)
inline constexpr double kBiasInput = 0.1;

// `out` is as long as `values`. Entries that are not finite become 0.
void TransformEntries(v1::Transform transform, std::span<const float> values, std::span<float> out);

struct InputScale {
  double scale = 0;
  double shift = 0;
  double norm = 0;  // bounds |z|, made of these very numbers, in exact arithmetic
  // scale |phi(x)| + shift |m| + 0.1, the parts of z. Far above `norm` where u is close to m.
  double magnitude = 0;
};

class InputTransform {
 public:
  // `center`, a released vector of d entries or empty, outlives this object.
  InputTransform(v1::Transform transform, std::span<const float> center);

  [[nodiscard]] v1::Transform transform() const { return transform_; }
  [[nodiscard]] std::span<const float> center() const { return center_; }

  // `phi` comes from TransformEntries. O(entries).
  [[nodiscard]] InputScale Scale(std::span<const int32_t> columns, std::span<const float> phi) const;

  // For z_a . z_b without the scales and the bias input: phi_a . phi_b, phi_a . m, m . m. Columns ascend.
  [[nodiscard]] double CenterDot(std::span<const int32_t> columns, std::span<const float> phi) const;
  [[nodiscard]] double center_square() const { return center_square_; }

 private:
  v1::Transform transform_;
  std::span<const float> center_;
  double center_square_ = 0;
};

}  // namespace dpar

#endif  // DPAR_CORE_INFER_INPUT_ROWS_H_
