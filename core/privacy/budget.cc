#include "core/privacy/budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/renyi.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kHalfUlp = std::numeric_limits<double>::epsilon() / 2;
constexpr double kRoundings = 16;  // covers the few operations of each use
constexpr double kUnits = static_cast<double>(kUnitsPerNat);
constexpr double kLargestUnits = 0x1p62;  // so that the sum of two prices never overflows
constexpr int64_t kLargestDefaultDeltaNodes = 100'000'000'000'000;

absl::Status ValidateCap(double cap_epsilon, double cap_delta) {
  DPAR_RETURN_IF_ERROR(ValidatePositive("cap_epsilon", cap_epsilon));
  DPAR_RETURN_IF_ERROR(ValidateRange("cap_epsilon", cap_epsilon, 0, kMaxEpsilon));
  return ValidateProbability("cap_delta", cap_delta);
}

absl::Status ValidateOrder(int64_t order) { return ValidateRange("order", order, kMinOrder, kMaxOrder); }

absl::Status ValidateUse(const BudgetTerms& terms, int64_t used_units, int64_t live_events) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  DPAR_RETURN_IF_ERROR(ValidateCap(terms.cap_epsilon, terms.cap_delta));
  DPAR_RETURN_IF_ERROR(ValidateOrder(terms.order));
  DPAR_RETURN_IF_ERROR(ValidateRange("cap_units", terms.cap_units, 0, kLargest));
  DPAR_RETURN_IF_ERROR(ValidateRange("used_units", used_units, 0, kLargest));
  return ValidateRange("live_events", live_events, 0, kLargest);
}

// ln(a/(a-1)) + ln a/(a-1), which falls with the order.
double FallingPart(int64_t order) {
  const double rest = static_cast<double>(order - 1);
  return std::log1p(1 / rest) + std::log(static_cast<double>(order)) / rest;
}

// The largest Renyi divergence at the order that gives (cap_epsilon, cap_delta).
double CapNats(double cap_epsilon, double log_delta, int64_t order) {
  return cap_epsilon + FallingPart(order) + log_delta / static_cast<double>(order - 1);
}

// Maximises CapNats / order, half the square of the largest Gaussian's mu, by branch and bound: over first..last,
// FallingPart is largest at `first` and ln delta / (a-1), negative, at `last`.
class OrderSearch {
 public:
  OrderSearch(double cap_epsilon, double log_delta) : cap_epsilon_(cap_epsilon), log_delta_(log_delta) {}

  int64_t Best() {
    for (int64_t first = kMinOrder; first <= kMaxOrder; first *= 2) {
      Consider(first);
    }
    for (int64_t first = kMinOrder; first <= kMaxOrder; first *= 2) {
      Search(first, std::min(2 * first - 1, kMaxOrder));
    }
    return best_order_;
  }

 private:
  void Consider(int64_t order) {
    const double value = CapNats(cap_epsilon_, log_delta_, order) / static_cast<double>(order);
    if (value > best_value_) {
      best_value_ = value;
      best_order_ = order;
    }
  }

  void Search(int64_t first, int64_t last) {
    const double largest = cap_epsilon_ + FallingPart(first) + log_delta_ / static_cast<double>(last - 1);
    const double divisor = static_cast<double>(largest > 0 ? first : last);
    if (largest / divisor <= best_value_) {
      return;
    }
    if (first == last) {
      Consider(first);
      return;
    }
    const int64_t middle = first + (last - first) / 2;
    Search(first, middle);
    Search(middle + 1, last);
  }

  double cap_epsilon_;
  double log_delta_;
  double best_value_ = -std::numeric_limits<double>::infinity();
  int64_t best_order_ = kMinOrder;
};

// CapNats in units, rounded down past the floating-point error of its terms.
int64_t CapUnitsRoundedDown(double cap_epsilon, double cap_delta, int64_t order) {
  const double log_delta = std::log(cap_delta);
  const double nats = CapNats(cap_epsilon, log_delta, order);
  const double magnitude = cap_epsilon + FallingPart(order) - log_delta / static_cast<double>(order - 1);
  const double units = std::floor((nats - kRoundings * kHalfUlp * magnitude) * kUnits * (1 - 2 * kHalfUlp));
  return units > 0 ? static_cast<int64_t>(units) : 0;
}

bool IsUntouched(int64_t used_units, int64_t live_events) { return used_units == 0 && live_events == 0; }

}  // namespace

absl::StatusOr<BudgetTerms> MakeBudgetTerms(double cap_epsilon, double cap_delta) {
  DPAR_RETURN_IF_ERROR(ValidateCap(cap_epsilon, cap_delta));
  BudgetTerms terms;
  terms.cap_epsilon = cap_epsilon;
  terms.cap_delta = cap_delta;
  terms.order = OrderSearch(cap_epsilon, std::log(cap_delta)).Best();
  terms.cap_units = CapUnitsRoundedDown(cap_epsilon, cap_delta, terms.order);
  if (terms.cap_units == 0) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, v1::PRIVACY_UNREACHABLE,
        absl::StrCat("no noise meets a cap of epsilon ", cap_epsilon, " at delta ", cap_delta, "; raise one of them"),
        {{"epsilon", absl::StrCat(cap_epsilon)}, {"delta", absl::StrCat(cap_delta)}});
  }
  return terms;
}

absl::StatusOr<int64_t> CapUnits(double cap_epsilon, double cap_delta, int64_t order) {
  DPAR_RETURN_IF_ERROR(ValidateCap(cap_epsilon, cap_delta));
  DPAR_RETURN_IF_ERROR(ValidateOrder(order));
  return CapUnitsRoundedDown(cap_epsilon, cap_delta, order);
}

absl::StatusOr<int64_t> EventUnits(const v1::PrivacyEvent& event, int64_t order) {
  DPAR_RETURN_IF_ERROR(ValidateOrder(order));
  DPAR_ASSIGN_OR_RETURN(const FlatEvent flat, Flatten(event));
  const Renyi divergence = RenyiOf(flat, static_cast<double>(order));
  const double units = std::ceil(std::max(divergence.remove, divergence.add) * kUnits * (1 + kRoundings * kHalfUlp));
  if (!(units < kLargestUnits)) {
    return InvalidField("event", "event has so little noise that no budget could hold its cost");
  }
  return std::max<int64_t>(static_cast<int64_t>(units), 1);
}

absl::StatusOr<double> EpsilonOfUnits(const BudgetTerms& terms, int64_t units) {
  DPAR_RETURN_IF_ERROR(ValidateUse(terms, units, 0));
  if (units == 0) {
    return 0;
  }
  const double nats = static_cast<double>(units) / kUnits;
  const double log_term = std::log(terms.cap_delta) / static_cast<double>(terms.order - 1);
  const double magnitude = nats + FallingPart(terms.order) - log_term;
  return std::max(0.0, nats - FallingPart(terms.order) - log_term + kRoundings * kHalfUlp * magnitude);
}

absl::StatusOr<double> LargestAdmissibleEpsilon(const BudgetTerms& terms, int64_t used_units, int64_t live_events) {
  DPAR_RETURN_IF_ERROR(ValidateUse(terms, used_units, live_events));
  const double by_itself = IsUntouched(used_units, live_events) ? terms.cap_epsilon : 0;
  const int64_t left = terms.cap_units - used_units;
  if (left <= 0) {
    return by_itself;
  }
  constexpr double kRoundDown = 1 - 1e-11;  // more than calibration and EventUnits round up
  const double mu = std::sqrt(2 * static_cast<double>(left) / kUnits / static_cast<double>(terms.order)) * kRoundDown;
  DPAR_ASSIGN_OR_RETURN(const double by_units, GaussianEpsilon(mu, terms.cap_delta));
  return std::max(by_itself, by_units * kRoundDown);
}

absl::StatusOr<EventPrice> PriceOfEvent(const v1::PrivacyEvent& event, const BudgetTerms& terms) {
  DPAR_RETURN_IF_ERROR(ValidateUse(terms, 0, 0));
  EventPrice cost;
  DPAR_ASSIGN_OR_RETURN(cost.units, EventUnits(event, terms.order));
  if (cost.units > terms.cap_units) {
    DPAR_ASSIGN_OR_RETURN(cost.epsilon, EventEpsilon(event, terms.cap_delta));
  }
  return cost;
}

absl::StatusOr<bool> Admits(const BudgetTerms& terms, int64_t used_units, int64_t live_events, const EventPrice& cost) {
  DPAR_RETURN_IF_ERROR(ValidateUse(terms, used_units, live_events));
  DPAR_RETURN_IF_ERROR(ValidateRange("units", cost.units, 1, std::numeric_limits<int64_t>::max()));
  if (used_units <= terms.cap_units && cost.units <= terms.cap_units - used_units) {
    return true;
  }
  return IsUntouched(used_units, live_events) && cost.epsilon.has_value() && *cost.epsilon <= terms.cap_epsilon;
}

absl::StatusOr<double> DefaultDelta(int64_t node_count) {
  DPAR_RETURN_IF_ERROR(ValidateRange("node_count", node_count, 1, kLargestDefaultDeltaNodes));
  // The smallest power of ten 10^j >= N; then 10^j / N is in [1, 10) and its whole part is the digit.
  int exponent = 0;
  int64_t power = 1;
  while (power < node_count) {
    power *= 10;
    ++exponent;
  }
  double delta = 0;
  if (!absl::SimpleAtod(absl::StrCat(power / node_count, "e-", exponent + 1), &delta)) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "the default delta could not be formed");
  }
  return delta;
}

}  // namespace dpar
