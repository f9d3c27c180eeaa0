// The loss of a row mixture as a function of the outcome.
#ifndef DPAR_CORE_PRIVACY_MIXTURE_LOSS_H_
#define DPAR_CORE_PRIVACY_MIXTURE_LOSS_H_

#include <cstdint>
#include <vector>

#include "core/privacy/flat_event.h"

namespace dpar {

// In units of the noise's standard deviation, with mu = 1 / noise_multiplier, row counts k of weight w_k shift the
// outcome y by k mu, and the loss against no shift is
//   L(y) = ln sum_k w_k e^(k mu y - (k mu)^2 / 2),
// increasing and convex in y.
class MixtureLoss {
 public:
  // Row counts whose weights together are at most dropped_weight_limit are left out.
  MixtureLoss(const RowMixture& mixture, double dropped_weight_limit);

  [[nodiscard]] double operator()(double y) const;

  [[nodiscard]] double mu() const { return mu_; }
  [[nodiscard]] int64_t last_row_count() const { return first_ + static_cast<int64_t>(weights_.size()) - 1; }
  // The weight of what was left out.
  [[nodiscard]] double dropped_weight() const { return dropped_weight_; }

 private:
  [[nodiscard]] double OneRow(double y) const;

  double mu_;
  double rate_;
  bool one_row_;
  int64_t first_ = 0;
  std::vector<double> weights_;  // of row counts first_, first_ + 1, ...
  std::vector<double> log_weights_;
  double dropped_weight_ = 0;
};

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_MIXTURE_LOSS_H_
