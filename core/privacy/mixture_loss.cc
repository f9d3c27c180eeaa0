#include "core/privacy/mixture_loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dpar {
namespace {

constexpr double kSmallExponent = 1;    // below it, e^u - 1 loses nothing to the 1
constexpr double kLargeExponent = 600;  // above it, e^u may overflow

}  // namespace

MixtureLoss::MixtureLoss(const RowMixture& mixture, double dropped_weight_limit)
    : mu_(1 / mixture.noise_multiplier), rate_(mixture.sampling_rate), one_row_(mixture.rows == 1) {
  // Ratios of neighbouring binomial weights, outwards from the largest, scaled to sum 1: relative error 1e-15 a step.
  const auto rows = static_cast<double>(mixture.rows);
  const double odds = rate_ / (1 - rate_);
  weights_.resize(static_cast<size_t>(mixture.rows) + 1);
  const auto mode = static_cast<size_t>(std::min(rows, std::floor((rows + 1) * rate_)));
  weights_[mode] = 1;
  for (size_t k = mode; k + 1 < weights_.size(); ++k) {
    weights_[k + 1] = weights_[k] * (rows - static_cast<double>(k)) / static_cast<double>(k + 1) * odds;
  }
  for (size_t k = mode; k > 0; --k) {
    weights_[k - 1] = weights_[k] * static_cast<double>(k) / (rows - static_cast<double>(k) + 1) / odds;
  }
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double& weight : weights_) {
    weight /= sum;
  }
  while (weights_.size() > mode + 1 && dropped_weight_ + weights_.back() <= dropped_weight_limit) {
    dropped_weight_ += weights_.back();
    weights_.pop_back();
  }
  size_t first = 0;
  while (first < mode && dropped_weight_ + weights_[first] <= dropped_weight_limit) {
    dropped_weight_ += weights_[first++];
  }
  weights_.erase(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(first));
  first_ = static_cast<int64_t>(first);
  for (const double weight : weights_) {
    log_weights_.push_back(std::log(weight));
  }
}

double MixtureLoss::OneRow(double y) const {
  const double u = mu_ * (y - mu_ / 2);
  if (std::fabs(u) < kSmallExponent) {
    return std::log1p(rate_ * std::expm1(u));
  }
  return u < kLargeExponent ? std::log(1 - rate_ + rate_ * std::exp(u)) : u + std::log(rate_);
}

double MixtureLoss::operator()(double y) const {
  if (one_row_ && weights_.size() == 2) {
    return OneRow(y);
  }
  const double first = mu_ * static_cast<double>(first_);
  const double last = mu_ * static_cast<double>(last_row_count());
  if (first_ == 0 && dropped_weight_ == 0 && last * (std::fabs(y) + last / 2) < kSmallExponent) {
    double excess = 0;
    for (size_t i = 1; i < weights_.size(); ++i) {
      const double shift = mu_ * static_cast<double>(i);
      excess += weights_[i] * std::expm1(shift * (y - shift / 2));
    }
    return std::log1p(excess);
  }
  double largest = -HUGE_VAL;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double shift = first + mu_ * static_cast<double>(i);
    largest = std::max(largest, log_weights_[i] + shift * (y - shift / 2));
  }
  double sum = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const double shift = first + mu_ * static_cast<double>(i);
    sum += std::exp(log_weights_[i] + shift * (y - shift / 2) - largest);
  }
  return largest + std::log(sum);
}

}  // namespace dpar
