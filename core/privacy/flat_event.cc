#include "core/privacy/flat_event.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kMaxTotalCount = 1'000'000'000'000;
constexpr double kHalfUlp = std::numeric_limits<double>::epsilon() / 2;
constexpr double kRoundUp = 1 + 8 * kHalfUlp;  // covers a ratio, a square root, a product

absl::Status TooMany() {
  return InvalidField("event",
                      absl::StrCat("event must not repeat a mechanism more than ", kMaxTotalCount, " times in all"));
}

class Flattener {
 public:
  explicit Flattener(FlatEvent& flat) : flat_(flat) {}

  absl::Status Add(const v1::PrivacyEvent& event, int64_t count) {
    switch (event.event_case()) {
      case v1::PrivacyEvent::kGaussian:
        AddGaussian(event.gaussian().sensitivity() / event.gaussian().noise_stddev(),
                    static_cast<double>(event.gaussian().count()) * static_cast<double>(count));
        return absl::OkStatus();
      case v1::PrivacyEvent::kLaplace:
        return Count(flat_.laplaces[event.laplace().sensitivity() / event.laplace().scale()], count);
      case v1::PrivacyEvent::kPoissonGaussian: {
        const v1::PoissonGaussianEvent& step = event.poisson_gaussian();
        return AddMixture({1, step.sampling_rate(), step.noise_stddev() / step.sensitivity()}, count);
      }
      case v1::PrivacyEvent::kRowMixture: {
        const v1::RowMixtureEvent& step = event.row_mixture();
        return AddMixture({step.rows(), step.sampling_rate(), step.noise_stddev() / step.sensitivity()}, count);
      }
      case v1::PrivacyEvent::kRowChange: {
        const v1::RowChangeEvent& step = event.row_change();
        return AddChange({step.changed_rows(), step.sampling_rate(), step.noise_stddev() / step.sensitivity(),
                          step.rounding() / step.sensitivity()},
                         count);
      }
      case v1::PrivacyEvent::kBoundedRange:
        return Count(flat_.selections[event.bounded_range().range()], count);
      case v1::PrivacyEvent::kComposition:
        for (const v1::PrivacyEvent& part : event.composition().events()) {
          DPAR_RETURN_IF_ERROR(Add(part, count));
        }
        return absl::OkStatus();
      case v1::PrivacyEvent::kRepetition:
        if (count > kMaxTotalCount / event.repetition().count()) {
          return TooMany();
        }
        return Add(event.repetition().event(), count * event.repetition().count());
      case v1::PrivacyEvent::kNodeSampling:
        return AddSampled(event.node_sampling(), count);
      case v1::PrivacyEvent::kStage:
        return Add(event.stage().event(), count);
      case v1::PrivacyEvent::EVENT_NOT_SET:
        break;
    }
    return InvalidField("event", "event must hold a kind of event");
  }

 private:
  // Squares add up; hypot neither overflows nor underflows.
  void AddGaussian(double ratio, double count) {
    const double mu = ratio * std::sqrt(count) * kRoundUp;
    flat_.gaussian_mu = flat_.gaussian_mu == 0 ? mu : std::hypot(flat_.gaussian_mu, mu) * kRoundUp;
  }

  static absl::Status Count(int64_t& total, int64_t count) {
    total += count;
    return total <= kMaxTotalCount ? absl::OkStatus() : TooMany();
  }

  absl::Status AddMixture(const RowMixture& mixture, int64_t count) {
    if (mixture.sampling_rate == 0) {
      return absl::OkStatus();
    }
    if (mixture.sampling_rate == 1) {
      AddGaussian(static_cast<double>(mixture.rows) / mixture.noise_multiplier, static_cast<double>(count));
      return absl::OkStatus();
    }
    return Count(flat_.mixtures[mixture], count);
  }

  absl::Status AddChange(const RowChange& change, int64_t count) {
    if (change.sampling_rate == 0) {
      return absl::OkStatus();
    }
    if (change.sampling_rate == 1) {
      const double shift = 1 + 2 * static_cast<double>(change.changed_rows) + change.rounding;
      AddGaussian(shift / change.noise_multiplier, static_cast<double>(count));
      return absl::OkStatus();
    }
    return Count(flat_.changes[change], count);
  }

  absl::Status AddSampled(const v1::NodeSamplingEvent& sampling, int64_t count) {
    if (sampling.sampling_rate() == 1) {
      return Add(sampling.event(), count);
    }
    SampledEvent sampled;
    sampled.sampling_rate = sampling.sampling_rate();
    sampled.count = count;
    DPAR_ASSIGN_OR_RETURN(sampled.inner, Flatten(sampling.event()));
    if (sampled.sampling_rate > 0) {
      flat_.sampled.push_back(std::move(sampled));
    }
    return absl::OkStatus();
  }

  FlatEvent& flat_;
};

}  // namespace

absl::Status AddEvent(const v1::PrivacyEvent& event, FlatEvent& flat) {
  DPAR_RETURN_IF_ERROR(ValidateEvent(event));
  return Flattener(flat).Add(event, 1);
}

absl::StatusOr<FlatEvent> Flatten(const v1::PrivacyEvent& event) {
  FlatEvent flat;
  DPAR_RETURN_IF_ERROR(AddEvent(event, flat));
  return flat;
}

}  // namespace dpar
