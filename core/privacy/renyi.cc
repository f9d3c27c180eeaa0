#include "core/privacy/renyi.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "core/privacy/mixture_renyi.h"
#include "core/privacy/row_change.h"

namespace dpar {
namespace {

constexpr double kHalfUlp = std::numeric_limits<double>::epsilon() / 2;
constexpr double kRoundUp = 1 + 32 * kHalfUlp;
constexpr int64_t kDenseOrders = 64;  // one by one; above, a few per octave
constexpr double kOrderRatio = 1.05;
constexpr double kSeriesMargin = 5e-13;  // what cancelling first-order terms leave
// Below this order * range the bound a r^2 / 8 is as good; the exact form would cancel.
constexpr double kSmallSelection = 1e-5;
// A node-sampled event at an order takes all smaller ones; beyond this, searching does not pay.
constexpr double kMaxSampledOrder = 1024;
constexpr int kRefinements = 32;
constexpr double kRefinementMargin = 2e-10;  // the search's error: delta at the epsilon for a delta is at most it

double LogAddExp(double a, double b) {
  const double high = std::max(a, b);
  return high == -HUGE_VAL ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

double LogOnePlusExp(double x) { return LogAddExp(0, x); }

double LogExpMinusOne(double x) { return x > 1 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x)); }

// E of e^(a L) - 1 - a (e^L - 1), exactly 0 in its last part, over the two atoms and the density of a Laplace loss:
// written out, with t = a - 1: (a/(2a-1)) (e^(t e) - 1) + (t/(2a-1)) (e^(-a e) - 1).
double LaplaceRenyi(double epsilon, double order) {
  const double less = order - 1;
  const double exponent = less * epsilon;
  const double heavy = order / (2 * order - 1);
  if (exponent > 500) {
    return (exponent + std::log(heavy)) / less * kRoundUp;
  }
  // Both parts cancel in first order: power series without the first term.
  double value = 0;
  if (order * epsilon < 0.1) {
    double up = exponent;
    double down = -order * epsilon;
    for (int k = 2; k < 20; ++k) {
      up *= exponent / k;
      down *= -order * epsilon / k;
      value += heavy * up + (1 - heavy) * down;
    }
  } else {
    value = heavy * std::expm1(exponent) + (1 - heavy) * std::expm1(-order * epsilon);
  }
  return std::log1p(value * (1 + kSeriesMargin)) / less * kRoundUp;
}

// sup over t of ln(p_t e^(a t) + (1 - p_t) e^(a (t - r))), p_t = (e^-t - e^-r)/(1 - e^-r). With s = e^-r the derivative
// vanishes where e^t = (a-1)(1 - s^a) / (a (s - s^a)).
double SelectionRenyi(double range, double order) {
  const double less = order - 1;
  const double bound = order * range * range / 8 * kRoundUp;
  if (order * range < kSmallSelection) {
    return bound;
  }
  const double top =
      range + std::log(less / order) + std::log(-std::expm1(-order * range)) - std::log(-std::expm1(-less * range));
  const double t = std::clamp(top, 0.0, range);
  const double denominator = -std::expm1(-range);
  const double high = std::exp(-t) * -std::expm1(t - range) / denominator;
  const double low = -std::expm1(-t) / denominator;
  const double log_excess = LogAddExp(high > 0 ? std::log(high) + LogPowerExcess(order, t) : -HUGE_VAL,
                                      low > 0 ? std::log(low) + LogPowerExcess(order, t - range) : -HUGE_VAL);
  const double exact = LogOnePlusExp(log_excess + 1e-12) / less * kRoundUp;
  return std::min(exact, bound);
}

// One row: removal is the larger (Mironov, Talwar and Zhang 2019, theorem 5), and stands for both.
Renyi MixtureBothWays(const RowMixture& mixture, double order) {
  const double remove = MixtureRenyi(mixture, Direction::kRemove, order);
  return {remove, mixture.rows == 1 ? remove : MixtureRenyi(mixture, Direction::kAdd, order)};
}

// (l-1) D_l in removal for l = 0..order: at some orders exactly, between them by chords.
std::vector<double> InnerCumulants(const FlatEvent& inner, int64_t order) {
  std::vector<double> cumulants(static_cast<size_t>(order) + 1, 0.0);
  for (int64_t previous = 1; previous < order;) {
    const auto spread = static_cast<int64_t>(static_cast<double>(previous) * kOrderRatio);
    const int64_t next = std::min(order, previous < kDenseOrders ? previous + 1 : std::max(previous + 1, spread));
    const double start = cumulants[static_cast<size_t>(previous)];
    const double end = static_cast<double>(next - 1) * RenyiOf(inner, static_cast<double>(next)).remove;
    for (int64_t l = previous + 1; l <= next; ++l) {
      const double share = static_cast<double>(l - previous) / static_cast<double>(next - previous);
      cumulants[static_cast<size_t>(l)] = (start + (end - start) * share) * kRoundUp;
    }
    previous = next;
  }
  return cumulants;
}

double SampledRemove(double rate, const std::vector<double>& cumulants) {
  const auto order = static_cast<double>(cumulants.size() - 1);
  double log_excess = -HUGE_VAL;
  double log_weight = order * std::log1p(-rate);  // ln C(a,l) (1-q)^(a-l) q^l at l = 0
  const double log_odds = std::log(rate) - std::log1p(-rate);
  for (size_t l = 1; l < cumulants.size(); ++l) {
    const auto at = static_cast<double>(l);
    log_weight += log_odds + std::log((order - at + 1) / at);
    if (cumulants[l] > 0) {
      log_excess = LogAddExp(log_excess, log_weight + LogExpMinusOne(cumulants[l]));
    }
  }
  const double rounding = order * (2 + std::fabs(log_odds)) * 4 * kHalfUlp;
  return LogOnePlusExp(log_excess + rounding) / (order - 1) * kRoundUp;
}

double SampledAdd(double rate, double order, const Renyi& inner, double second_cumulant) {
  const double less = order - 1;
  const double flat = -std::log1p(-rate);
  const double convex = LogAddExp(std::log1p(-rate), std::log(rate) + less * inner.add) / less;
  const double log_curvature = std::log(order * less / 2) + 2 * std::log(rate) - (order + 1) * std::log1p(-rate);
  const double log_excess = second_cumulant > 0 ? log_curvature + LogExpMinusOne(second_cumulant) : -HUGE_VAL;
  const double taylor = LogOnePlusExp(log_excess) / less;
  return std::max(0.0, std::min({flat, convex, taylor})) * kRoundUp;
}

Renyi SampledBothWays(const SampledEvent& sampled, double order) {
  const auto integer = static_cast<int64_t>(std::max(2.0, std::ceil(order)));
  const auto at = static_cast<double>(integer);
  const Renyi inner = RenyiOf(sampled.inner, at);
  const std::vector<double> cumulants = InnerCumulants(sampled.inner, integer);
  return {std::min(inner.remove, SampledRemove(sampled.sampling_rate, cumulants)),
          std::min(inner.add, SampledAdd(sampled.sampling_rate, at, inner, cumulants[2]))};
}

void Accumulate(double count, const Renyi& one, Renyi& total) {
  total.remove = (total.remove + count * one.remove) * (1 + 4 * kHalfUlp);
  total.add = (total.add + count * one.add) * (1 + 4 * kHalfUlp);
}

// Golden section: the index of the smallest value of a sequence that falls and then rises.
template <typename Function>
size_t LowestIndex(size_t size, const Function& value) {
  constexpr double kGolden = 0.61803398874989484820;
  std::map<size_t, double> known;
  const auto at = [&](size_t i) {
    const auto found = known.find(i);
    return found != known.end() ? found->second : known[i] = value(i);
  };
  size_t low = 0;
  size_t high = size - 1;
  while (high - low > 2) {
    const auto part = static_cast<size_t>(std::lround(static_cast<double>(high - low) * (1 - kGolden)));
    const size_t left = low + part;
    const size_t right = std::max(high - part, left + 1);
    (at(left) <= at(right) ? high : low) = at(left) <= at(right) ? right : left;
  }
  size_t best = low;
  for (size_t i = low + 1; i <= high; ++i) {
    best = at(i) < at(best) ? i : best;
  }
  return best;
}

std::vector<double> UsableOrders(const FlatEvent& event, const std::vector<double>& orders) {
  if (event.sampled.empty()) {
    return orders;
  }
  std::vector<double> integers;
  std::copy_if(orders.begin(), orders.end(), std::back_inserter(integers),
               [](double order) { return order == std::floor(order) && order >= 2 && order <= kMaxSampledOrder; });
  return integers;
}

// The least value over RenyiOrders(), then between the neighbours of the best; node-sampled events at integers only.
template <typename Function>
double LowestOverOrders(const FlatEvent& event, const Function& value) {
  const std::vector<double> orders = UsableOrders(event, RenyiOrders());
  const size_t best = LowestIndex(orders.size(), [&](size_t i) { return value(orders[i]); });
  double lowest = value(orders[best]);
  if (!event.sampled.empty()) {
    return lowest;
  }
  double low = orders[best == 0 ? 0 : best - 1];
  double high = orders[std::min(best + 1, orders.size() - 1)];
  for (int i = 0; i < kRefinements; ++i) {
    const double left = low + (high - low) / 3;
    const double right = high - (high - low) / 3;
    const double at_left = value(left);
    const double at_right = value(right);
    lowest = std::min({lowest, at_left, at_right});
    (at_left <= at_right ? high : low) = at_left <= at_right ? right : left;
  }
  return lowest;
}

}  // namespace

Renyi RenyiOf(const FlatEvent& event, double order) {
  Renyi total;
  const double gaussian = order * event.gaussian_mu * event.gaussian_mu / 2 * (1 + 4 * kHalfUlp);
  Accumulate(1, {gaussian, gaussian}, total);
  for (const auto& [mixture, count] : event.mixtures) {
    Accumulate(static_cast<double>(count), MixtureBothWays(mixture, order), total);
  }
  for (const auto& [change, count] : event.changes) {
    const double one = RowChangeRenyi(change, order);
    Accumulate(static_cast<double>(count), {one, one}, total);
  }
  for (const auto& [epsilon, count] : event.laplaces) {
    const double one = LaplaceRenyi(epsilon, order);
    Accumulate(static_cast<double>(count), {one, one}, total);
  }
  for (const auto& [range, count] : event.selections) {
    const double one = SelectionRenyi(range, order);
    Accumulate(static_cast<double>(count), {one, one}, total);
  }
  for (const SampledEvent& sampled : event.sampled) {
    Accumulate(static_cast<double>(sampled.count), SampledBothWays(sampled, order), total);
  }
  return total;
}

double RenyiToEpsilon(double divergence, double order, double delta) {
  const double less = order - 1;
  const double converted = divergence + std::log1p(-1 / order) - (std::log(delta) + std::log(order)) / less;
  return std::max(0.0, converted + 8 * kHalfUlp * (divergence + 1 + std::fabs(std::log(delta)) / less));
}

const std::vector<double>& RenyiOrders() {
  static const auto* orders = [] {
    auto* list = new std::vector<double>;
    for (int i = 1; i < 10; ++i) {
      list->push_back(1 + i / 100.0);
    }
    for (int i = 1; i < 100; ++i) {
      list->push_back(1 + i / 10.0);
    }
    for (int i = 11; i < 64; ++i) {
      list->push_back(i);
    }
    for (int i = 6 * 16; i <= 20 * 16; ++i) {
      list->push_back(std::round(std::exp2(i / 16.0)));
    }
    return list;
  }();
  return *orders;
}

RenyiEpsilonBound RenyiEpsilon(const FlatEvent& event, Direction direction, double delta,
                               const std::vector<double>& orders) {
  const std::vector<double> usable = UsableOrders(event, orders);
  if (usable.empty()) {
    return {std::numeric_limits<double>::infinity(), 0};
  }
  const auto epsilon = [&](size_t i) {
    return RenyiToEpsilon(RenyiOf(event, usable[i]).In(direction), usable[i], delta);
  };
  const size_t best = LowestIndex(usable.size(), epsilon);
  return {epsilon(best), usable[best]};
}

double RenyiEpsilon(const FlatEvent& event, Direction direction, double delta) {
  const double epsilon = LowestOverOrders(
      event, [&](double order) { return RenyiToEpsilon(RenyiOf(event, order).In(direction), order, delta); });
  return epsilon * (1 + kRefinementMargin);
}

double RenyiDelta(const FlatEvent& event, Direction direction, double epsilon) {
  const double log_delta = LowestOverOrders(event, [&](double order) {
    const double divergence = RenyiOf(event, order).In(direction);
    const double rounding = 16 * kHalfUlp * order * (divergence + epsilon + 1);
    return (order - 1) * (divergence - epsilon + std::log1p(-1 / order)) - std::log(order) + rounding;
  });
  return std::min(1.0, std::exp(log_delta) * kRoundUp);
}

}  // namespace dpar
