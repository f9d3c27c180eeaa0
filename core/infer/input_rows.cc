#include "core/infer/input_rows.h"

#include <cmath>
#include <limits>

namespace dpar {
namespace {

// Bounds the relative error of a sum of `terms` products in double and a few more operations.
double RelativeError(size_t terms) { return 0x1p-52 * static_cast<double>(terms + 16); }

}  // namespace

void TransformEntries(v1::Transform transform, std::span<const float> values, std::span<float> out) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (size_t i = 0; i < values.size(); ++i) {
    out[i] = std::fabs(values[i]) <= kLargest ? values[i] : 0.0F;
  }
  if (transform == v1::SQRT_UNIT) {
    for (float& value : out) {
      value = std::copysign(std::sqrt(std::fabs(value)), value);
    }
  }
}

InputTransform::InputTransform(v1::Transform transform, std::span<const float> center)
    : transform_(transform), center_(center) {
  for (const float value : center_) {
    center_square_ += static_cast<double>(value) * static_cast<double>(value);
  }
}

double InputTransform::CenterDot(std::span<const int32_t> columns, std::span<const float> phi) const {
  double dot = 0;
  for (size_t i = 0; i < columns.size() && !center_.empty(); ++i) {
    dot += static_cast<double>(phi[i]) * static_cast<double>(center_[static_cast<size_t>(columns[i])]);
  }
  return dot;
}

InputScale InputTransform::Scale(std::span<const int32_t> columns, std::span<const float> phi) const {
  double square = 0;
  for (const float value : phi) {
    square += static_cast<double>(value) * static_cast<double>(value);
  }
  const double error = RelativeError(phi.size() + center_.size());
  InputScale result;
  double feature_square = 0;  // of z's features, rounded up
  if (transform_ == v1::RAW) {
    result.scale = 1;
    feature_square = square;
  } else if (center_.empty()) {
    result.scale = square > 0 ? kRowScale / std::sqrt(square) : 0;
    feature_square = result.scale * result.scale * square;
  } else {
    const double unit = square > 0 ? 1 / std::sqrt(square) : 0;
    const double own = square > 0 ? 1 : 0;
    // |u - m|^2 cancels where u is close to m: the error is relative to the two parts.
    const double parts = own + center_square_;
    const double difference = own - 2 * unit * CenterDot(columns, phi) + center_square_;
    const double distance_square = std::fmax(difference, 0) + 4 * error * parts;
    result.shift = distance_square > 0 ? kRowScale / std::sqrt(distance_square) : 0;
    result.scale = result.shift * unit;
    feature_square = result.shift * result.shift * distance_square;
  }
  result.norm = std::sqrt(feature_square + kBiasInput * kBiasInput) * (1 + error);
  result.magnitude =
      (result.scale * std::sqrt(square) + result.shift * std::sqrt(center_square_) + kBiasInput) * (1 + error);
  return result;
}

}  // namespace dpar
