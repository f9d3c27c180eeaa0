// The arithmetic of a budget: a Renyi filter at one order, in integer units.
//
// Jobs are chosen after seeing earlier results, so a budget composes adaptively. Renyi differential privacy at one
// order a adds up under full adaptivity, and a total R at order a gives (eps, delta)-DP with
//   R <= eps - ln((a-1)/a) + (ln delta + ln a)/(a-1).
// Setting the cap fixes the order: the integer a that admits the largest Gaussian, which spends a mu^2 / 2. A minimum
// over orders at conversion time would not be a valid filter.
#ifndef DPAR_CORE_PRIVACY_BUDGET_H_
#define DPAR_CORE_PRIVACY_BUDGET_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

inline constexpr int64_t kUnitsPerNat = 1'000'000'000;
inline constexpr int64_t kMinOrder = 2;
inline constexpr int64_t kMaxOrder = 1'000'000;

struct BudgetTerms {
  double cap_epsilon = 0;
  double cap_delta = 0;
  int64_t order = 0;      // a*
  int64_t cap_units = 0;  // rounded down
};

// The order and the cap in units for a cap (epsilon, delta): 0 < epsilon <= kMaxEpsilon, 0 < delta < 1.
// PRIVACY_UNREACHABLE when no order admits any noise.
absl::StatusOr<BudgetTerms> MakeBudgetTerms(double cap_epsilon, double cap_delta);

// The cap in units at an order that is already fixed (a changed cap keeps its order). Rounded down; 0 if nothing fits.
absl::StatusOr<int64_t> CapUnits(double cap_epsilon, double cap_delta, int64_t order);

// An event's units at an order, the larger of both directions, rounded up, at least 1. INVALID_ARGUMENT beyond 62 bits.
absl::StatusOr<int64_t> EventUnits(const v1::PrivacyEvent& event, int64_t order);

// The epsilon at terms.cap_delta that `units` at the order give, rounded up; 0 for 0.
absl::StatusOr<double> EpsilonOfUnits(const BudgetTerms& terms, int64_t units);

// The largest epsilon, at terms.cap_delta, with which a Gaussian job is admitted next to `used_units` of `live_events`
// events (see Admits). Rounded down, so that a job at it is admitted; 0 when nothing fits.
absl::StatusOr<double> LargestAdmissibleEpsilon(const BudgetTerms& terms, int64_t used_units, int64_t live_events);

struct EventPrice {
  int64_t units = 0;              // as EventUnits
  std::optional<double> epsilon;  // its own, at terms.cap_delta; only where its units alone exceed the cap
};
// Takes up to seconds for sampled steps.
absl::StatusOr<EventPrice> PriceOfEvent(const v1::PrivacyEvent& event, const BudgetTerms& terms);

// Whether an event is admitted next to `used_units` of `live_events` events: by units, or as the only event by its own
// epsilon at terms.cap_delta. Units used without an event (a debit) close the second way.
absl::StatusOr<bool> Admits(const BudgetTerms& terms, int64_t used_units, int64_t live_events, const EventPrice& cost);

// delta for a dataset of N slots, 1..10^14, when its owner names none: 1/(10 N), rounded down to one significant digit.
absl::StatusOr<double> DefaultDelta(int64_t node_count);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_BUDGET_H_
