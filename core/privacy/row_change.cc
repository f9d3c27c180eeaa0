#include "core/privacy/row_change.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace dpar {
namespace {

constexpr double kHalfUlp = std::numeric_limits<double>::epsilon() / 2;
constexpr size_t kMostAtoms = size_t{1} << 14;

struct Shift {
  double mu = 0;
  double log_weight = 0;
};

std::vector<Shift> ShiftsOf(const RowChange& change) {
  const auto rows = static_cast<double>(change.changed_rows);
  const double log_in = std::log(change.sampling_rate);
  const double log_out = std::log1p(-change.sampling_rate);
  std::vector<Shift> shifts;
  shifts.reserve(2 * static_cast<size_t>(change.changed_rows) + 2);
  double log_weight = rows * log_out;
  for (int64_t k = 0; k <= change.changed_rows; ++k) {
    const auto at = static_cast<double>(k);
    if (k > 0) {
      log_weight += std::log((rows - at + 1) / at) + log_in - log_out;
    }
    const double even = k == 0 ? 0 : (2 * at + change.rounding) / change.noise_multiplier;
    shifts.push_back({even, log_weight + log_out});
    shifts.push_back({(2 * at + 1 + change.rounding) / change.noise_multiplier, log_weight + log_in});
  }
  return shifts;
}

// Bounds the error of a log_weight: every row adds a few roundings of numbers at most this large.
double MarginOf(const RowChange& change) {
  const double steps = static_cast<double>(change.changed_rows) + 2;
  const double largest = steps * (2 - std::log(change.sampling_rate) - std::log1p(-change.sampling_rate) + 1);
  return 6 * kHalfUlp * steps * largest;
}

struct Kept {
  std::vector<Shift> shifts;
  double dropped_weight = 0;  // of larger shifts
};

Kept Keep(const RowChange& change, double tail_mass) {
  Kept kept{ShiftsOf(change), 0};
  const double margin = MarginOf(change);
  for (Shift& shift : kept.shifts) {
    shift.log_weight += margin;
  }
  std::vector<Shift>& shifts = kept.shifts;
  while (shifts.size() > 1 && kept.dropped_weight + std::exp(shifts.back().log_weight) <= tail_mass / 2) {
    kept.dropped_weight += std::exp(shifts.back().log_weight);
    shifts.pop_back();
  }
  double below = 0;
  size_t first = 0;
  while (first + 1 < shifts.size() && below + std::exp(shifts[first].log_weight) <= tail_mass / 2) {
    below += std::exp(shifts[first++].log_weight);
  }
  shifts.erase(shifts.begin(), shifts.begin() + static_cast<std::ptrdiff_t>(first));
  shifts.front().log_weight = std::log(std::exp(shifts.front().log_weight) + below);
  return kept;
}

using Atom = std::pair<double, double>;  // loss and mass

// Moves sorted atoms to every stride-th loss: an atom of loss l between a and b gives (1 - e^(a-l)) / (1 - e^(a-b)) of
// its mass to b and the rest to a, which keeps both P- and Q-masses.
LossAtoms Thin(const std::vector<Atom>& atoms) {
  const size_t stride = (atoms.size() + kMostAtoms - 1) / kMostAtoms;
  LossAtoms thin;
  for (size_t first = 0; first < atoms.size(); first += stride) {
    const double low = atoms[first].first;
    if (thin.loss.empty() || low > thin.loss.back()) {
      thin.loss.push_back(low);
      thin.mass.push_back(0);
    }
  }
  if (atoms.back().first > thin.loss.back()) {
    thin.loss.push_back(atoms.back().first);
    thin.mass.push_back(0);
  }
  size_t below = 0;
  for (const auto& [loss, mass] : atoms) {
    while (below + 1 < thin.loss.size() && thin.loss[below + 1] <= loss) {
      ++below;
    }
    const double width = below + 1 < thin.loss.size() ? -std::expm1(thin.loss[below] - thin.loss[below + 1]) : 0;
    const double up = width > 0 ? std::min(1.0, -std::expm1(thin.loss[below] - loss) / width) : 0;
    thin.mass[below] += mass * (1 - up);
    if (up > 0) {
      thin.mass[below + 1] += mass * up;
    }
  }
  return thin;
}

}  // namespace

LossAtoms RowChangeAtoms(const RowChange& change, double tail_mass) {
  const Kept kept = Keep(change, tail_mass);
  std::vector<Atom> all;
  double infinite_mass = kept.dropped_weight;
  for (const Shift& shift : kept.shifts) {
    const double weight = std::exp(shift.log_weight);
    if (shift.mu == 0) {
      all.emplace_back(0, weight);
      continue;
    }
    const LossAtoms one = GaussianAtoms(shift.mu, kLargestIntervalStep, tail_mass);
    infinite_mass += weight * one.infinite_mass;
    for (size_t i = 0; i < one.loss.size(); ++i) {
      all.emplace_back(one.loss[i], weight * one.mass[i]);
    }
  }
  std::sort(all.begin(), all.end());
  LossAtoms atoms = Thin(all);
  atoms.step = kLargestIntervalStep;
  atoms.infinite_mass = infinite_mass;
  return atoms;
}

double RowChangeIntervals(const RowChange& change, double tail_mass) {
  double intervals = 0;
  for (const Shift& shift : Keep(change, tail_mass).shifts) {
    intervals += GaussianIntervals(shift.mu, tail_mass);
  }
  return intervals;
}

double RowChangeRenyi(const RowChange& change, double order) {
  constexpr double kLarge = 1;
  const auto log_expm1 = [](double x) { return x > kLarge ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x)); };
  std::vector<double> exponents;
  double largest = -HUGE_VAL;
  for (const Shift& shift : ShiftsOf(change)) {
    if (shift.mu > 0) {
      exponents.push_back(shift.log_weight + log_expm1(order * (order - 1) * shift.mu * shift.mu / 2));
      largest = std::max(largest, exponents.back());
    }
  }
  double sum = 0;
  for (const double exponent : exponents) {
    sum += std::exp(exponent - largest);
  }
  const double log_excess = largest + std::log(sum) + MarginOf(change) + 32 * kHalfUlp * (1 + std::fabs(largest));
  const double log_moment = std::max(0.0, log_excess) + std::log1p(std::exp(-std::fabs(log_excess)));
  return log_moment / (order - 1) * (1 + 32 * kHalfUlp);
}

}  // namespace dpar
