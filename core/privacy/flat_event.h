// An event without its tree: Gaussians merged into one, equal mechanisms counted. Composition does not depend on order,
// so nothing is lost, and trees with the same meaning have the same price.
#ifndef DPAR_CORE_PRIVACY_FLAT_EVENT_H_
#define DPAR_CORE_PRIVACY_FLAT_EVENT_H_

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

// Whose loss is measured: the graph with the node against the one without (kRemove), or the other way round (kAdd).
enum class Direction { kRemove, kAdd };

// A Gaussian shifted by Binomial(rows, sampling_rate) against an unshifted one; one row shifts by 1 and the standard
// deviation is noise_multiplier. 0 < sampling_rate < 1.
struct RowMixture {
  int64_t rows = 1;
  double sampling_rate = 0;
  double noise_multiplier = 0;
  auto operator<=>(const RowMixture&) const = default;
};

// A Gaussian whose shift is revealed: 2 k + own, if not 0, and `rounding` more, with k ~ Binomial(changed_rows,
// sampling_rate) and own ~ Bernoulli(sampling_rate). A row's own sensitivity is 1 and the standard deviation
// noise_multiplier. 0 < sampling_rate < 1. The same in both directions (row_change.h).
struct RowChange {
  int64_t changed_rows = 0;
  double sampling_rate = 0;
  double noise_multiplier = 0;
  double rounding = 0;
  auto operator<=>(const RowChange&) const = default;
};

struct SampledEvent;

struct FlatEvent {
  double gaussian_mu = 0;                  // of all Gaussians together, rounded up
  std::map<RowMixture, int64_t> mixtures;  // by number of times
  std::map<RowChange, int64_t> changes;
  std::map<double, int64_t> laplaces;    // sensitivity / scale
  std::map<double, int64_t> selections;  // range
  std::vector<SampledEvent> sampled;

  [[nodiscard]] bool IsGaussian() const {
    return mixtures.empty() && changes.empty() && laplaces.empty() && selections.empty() && sampled.empty();
  }
};

// An event on a secret sample of the nodes, count times with fresh samples. 0 < sampling_rate < 1.
struct SampledEvent {
  double sampling_rate = 0;
  FlatEvent inner;
  int64_t count = 0;
};

// INVALID_ARGUMENT for an invalid event, or one with more than 10^12 mechanisms of one kind.
absl::StatusOr<FlatEvent> Flatten(const v1::PrivacyEvent& event);
absl::Status AddEvent(const v1::PrivacyEvent& event, FlatEvent& flat);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_FLAT_EVENT_H_
