// Softmax of one row of scores, as prediction uses it.
#ifndef DPAR_CORE_INFER_SOFTMAX_H_
#define DPAR_CORE_INFER_SOFTMAX_H_

#include <Eigen/Core>

namespace dpar {

// Exponentials below e^-60 are 0: they vanish next to the least message of mean-field, and their products would be slow
// subnormal numbers.
inline void Softmax(const Eigen::RowVectorXd& scores, Eigen::RowVectorXf& out) {
  constexpr float kLeastExponent = -60;
  out = (scores.array() - scores.maxCoeff()).cast<float>();
  out = (out.array() < kLeastExponent).select(0.0F, out.array().exp());
  out /= out.sum();
}

}  // namespace dpar

#endif  // DPAR_CORE_INFER_SOFTMAX_H_
