// The loss of a row mixture as a function of the outcome.
#ifndef DPAR_CORE_PRIVACY_MIXTURE_LOSS_H_
#define DPAR_CORE_PRIVACY_MIXTURE_LOSS_H_

#include <cstdint>
#include <vector>

#include "core/privacy/flat_event.h"

namespace dpar {

// With outcomes y in units of the noise's standard deviation and mu = 1 / noise_multiplier, k rows, of weight w_k,
// shift y by k mu. The loss against no shift, increasing and convex, is L(y) = ln sum_k w_k e^(k mu y - (k mu)^2/2).
class MixtureLoss {
 public:
  // Drops row counts whose weights together are at most dropped_weight_limit.
  MixtureLoss(const RowMixture& mixture, double dropped_weight_limit);

  [[nodiscard]] double operator()(double y) const;

  [[nodiscard]] double mu() const { return mu_; }
  [[nodiscard]] int64_t last_row_count() const { return first_ + static_cast<int64_t>(weights_.size()) - 1; }
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
