#include "core/privacy/event.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr absl::string_view kKinds =
    "gaussian, laplace, poisson_gaussian, row_mixture, bounded_range, composition, repetition, node_sampling, stage, "
    "row_change";
constexpr size_t kMaxStageNameLength = 32;
constexpr double kMaxRounding = 1e6;  // times the sensitivity

absl::Status ValidateRate(const std::string& path, double rate) {
  return ValidateRange(absl::StrCat(path, "sampling_rate"), rate, 0.0, 1.0);
}

absl::Status ValidateRatio(const std::string& path, const char* noise_name, double sensitivity, double noise,
                           double low, double high) {
  const std::string noise_path = absl::StrCat(path, noise_name);
  DPAR_RETURN_IF_ERROR(ValidatePositive(absl::StrCat(path, "sensitivity"), sensitivity));
  DPAR_RETURN_IF_ERROR(ValidatePositive(noise_path, noise));
  const double ratio = noise / sensitivity;
  if (ratio >= low && ratio <= high) {
    return absl::OkStatus();
  }
  return InvalidField(noise_path, absl::StrCat(noise_path, " must be from ", low, " to ", high,
                                               " times the sensitivity, got ", ratio, " times"));
}

absl::Status ValidateGaussian(const std::string& path, const v1::GaussianEvent& event) {
  DPAR_RETURN_IF_ERROR(ValidatePositive(absl::StrCat(path, "sensitivity"), event.sensitivity()));
  DPAR_RETURN_IF_ERROR(ValidatePositive(absl::StrCat(path, "noise_stddev"), event.noise_stddev()));
  DPAR_RETURN_IF_ERROR(ValidateRange(absl::StrCat(path, "count"), event.count(), 1, kMaxEventCount));
  const double ratio = event.sensitivity() / event.noise_stddev();
  if (!std::isnormal(ratio) || !std::isnormal(ratio * std::sqrt(static_cast<double>(event.count())))) {
    return InvalidField(absl::StrCat(path, "noise_stddev"),
                        absl::StrCat(path, "noise_stddev is too far from ", path, "sensitivity"));
  }
  return absl::OkStatus();
}

absl::Status ValidatePoissonGaussian(const std::string& path, const v1::PoissonGaussianEvent& event) {
  DPAR_RETURN_IF_ERROR(ValidateRate(path, event.sampling_rate()));
  return ValidateRatio(path, "noise_stddev", event.sensitivity(), event.noise_stddev(), kMinNoiseMultiplier,
                       kMaxNoiseMultiplier);
}

absl::Status ValidateRowMixture(const std::string& path, const v1::RowMixtureEvent& event) {
  DPAR_RETURN_IF_ERROR(ValidateRange(absl::StrCat(path, "rows"), event.rows(), 1, kMaxEventRows));
  DPAR_RETURN_IF_ERROR(ValidateRate(path, event.sampling_rate()));
  return ValidateRatio(path, "noise_stddev", event.sensitivity(), event.noise_stddev(), kMinNoiseMultiplier,
                       kMaxNoiseMultiplier);
}

absl::Status ValidateRowChange(const std::string& path, const v1::RowChangeEvent& event) {
  DPAR_RETURN_IF_ERROR(ValidateRange(absl::StrCat(path, "changed_rows"), event.changed_rows(), 0, kMaxEventRows));
  DPAR_RETURN_IF_ERROR(ValidateRate(path, event.sampling_rate()));
  DPAR_RETURN_IF_ERROR(ValidateRatio(path, "noise_stddev", event.sensitivity(), event.noise_stddev(),
                                     kMinNoiseMultiplier, kMaxNoiseMultiplier));
  return ValidateRange(absl::StrCat(path, "rounding"), event.rounding(), 0.0, kMaxRounding * event.sensitivity());
}

absl::Status ValidateStageName(const std::string& path, absl::string_view name) {
  const bool known = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
  });
  if (known && !name.empty() && name.size() <= kMaxStageNameLength) {
    return absl::OkStatus();
  }
  return InvalidField(path, absl::StrCat(path, " must be 1 to ", kMaxStageNameLength, " characters of a-z, 0-9 and -"));
}

class Validator {
 public:
  absl::Status Visit(const v1::PrivacyEvent& event, const std::string& path, int depth) {
    if (depth > kMaxEventDepth || ++nodes_ > kMaxEventNodes) {
      return InvalidField("event", absl::StrCat("event must be at most ", kMaxEventDepth, " deep and hold at most ",
                                                kMaxEventNodes, " events"));
    }
    switch (event.event_case()) {
      case v1::PrivacyEvent::kGaussian:
        return ValidateGaussian(absl::StrCat(path, "gaussian."), event.gaussian());
      case v1::PrivacyEvent::kLaplace:
        return ValidateRatio(absl::StrCat(path, "laplace."), "scale", event.laplace().sensitivity(),
                             event.laplace().scale(), kMinLaplaceScale, kMaxLaplaceScale);
      case v1::PrivacyEvent::kPoissonGaussian:
        return ValidatePoissonGaussian(absl::StrCat(path, "poisson_gaussian."), event.poisson_gaussian());
      case v1::PrivacyEvent::kRowMixture:
        return ValidateRowMixture(absl::StrCat(path, "row_mixture."), event.row_mixture());
      case v1::PrivacyEvent::kRowChange:
        return ValidateRowChange(absl::StrCat(path, "row_change."), event.row_change());
      case v1::PrivacyEvent::kBoundedRange:
        return ValidateRange(absl::StrCat(path, "bounded_range.range"), event.bounded_range().range(), kMinPureEpsilon,
                             kMaxPureEpsilon);
      case v1::PrivacyEvent::kComposition:
        for (int i = 0; i < event.composition().events_size(); ++i) {
          DPAR_RETURN_IF_ERROR(
              Visit(event.composition().events(i), absl::StrCat(path, "composition.events[", i, "]."), depth + 1));
        }
        return absl::OkStatus();
      case v1::PrivacyEvent::kRepetition:
        DPAR_RETURN_IF_ERROR(
            ValidateRange(absl::StrCat(path, "repetition.count"), event.repetition().count(), 1, kMaxEventCount));
        return Visit(event.repetition().event(), absl::StrCat(path, "repetition.event."), depth + 1);
      case v1::PrivacyEvent::kNodeSampling:
        return VisitSampling(event.node_sampling(), path, depth);
      case v1::PrivacyEvent::kStage:
        DPAR_RETURN_IF_ERROR(ValidateStageName(absl::StrCat(path, "stage.name"), event.stage().name()));
        return Visit(event.stage().event(), absl::StrCat(path, "stage.event."), depth + 1);
      case v1::PrivacyEvent::EVENT_NOT_SET:
        break;
    }
    return InvalidField("event", absl::StrCat("event must hold a kind of event that this accountant knows: ", kKinds));
  }

 private:
  absl::Status VisitSampling(const v1::NodeSamplingEvent& sampling, const std::string& path, int depth) {
    DPAR_RETURN_IF_ERROR(ValidateRate(absl::StrCat(path, "node_sampling."), sampling.sampling_rate()));
    if (sampling_depth_ == kMaxSamplingDepth) {
      return InvalidField("event", absl::StrCat("event must not sample nodes more than ", kMaxSamplingDepth, " deep"));
    }
    ++sampling_depth_;
    absl::Status status = Visit(sampling.event(), absl::StrCat(path, "node_sampling.event."), depth + 1);
    --sampling_depth_;
    return status;
  }

  int nodes_ = 0;
  int sampling_depth_ = 0;
};

absl::StatusOr<v1::PrivacyEvent> Valid(v1::PrivacyEvent event) {
  DPAR_RETURN_IF_ERROR(ValidateEvent(event));
  return event;
}

}  // namespace

absl::StatusOr<v1::PrivacyEvent> MakeGaussianEvent(double sensitivity, double noise_stddev, int64_t count) {
  v1::PrivacyEvent event;
  event.mutable_gaussian()->set_sensitivity(sensitivity);
  event.mutable_gaussian()->set_noise_stddev(noise_stddev);
  event.mutable_gaussian()->set_count(count);
  return Valid(std::move(event));
}

absl::StatusOr<v1::PrivacyEvent> MakeLaplaceEvent(double sensitivity, double scale) {
  v1::PrivacyEvent event;
  event.mutable_laplace()->set_sensitivity(sensitivity);
  event.mutable_laplace()->set_scale(scale);
  return Valid(std::move(event));
}

absl::StatusOr<v1::PrivacyEvent> MakePoissonGaussianEvent(double sampling_rate, double sensitivity,
                                                          double noise_stddev) {
  v1::PrivacyEvent event;
  event.mutable_poisson_gaussian()->set_sampling_rate(sampling_rate);
  event.mutable_poisson_gaussian()->set_sensitivity(sensitivity);
  event.mutable_poisson_gaussian()->set_noise_stddev(noise_stddev);
  return Valid(std::move(event));
}

absl::StatusOr<v1::PrivacyEvent> MakeRowMixtureEvent(int64_t rows, double sampling_rate, double sensitivity,
                                                     double noise_stddev) {
  v1::PrivacyEvent event;
  event.mutable_row_mixture()->set_rows(rows);
  event.mutable_row_mixture()->set_sampling_rate(sampling_rate);
  event.mutable_row_mixture()->set_sensitivity(sensitivity);
  event.mutable_row_mixture()->set_noise_stddev(noise_stddev);
  return Valid(std::move(event));
}

absl::StatusOr<v1::PrivacyEvent> MakeRowChangeEvent(int64_t changed_rows, double sampling_rate, double sensitivity,
                                                    double noise_stddev, double rounding) {
  v1::PrivacyEvent event;
  event.mutable_row_change()->set_changed_rows(changed_rows);
  event.mutable_row_change()->set_sampling_rate(sampling_rate);
  event.mutable_row_change()->set_sensitivity(sensitivity);
  event.mutable_row_change()->set_noise_stddev(noise_stddev);
  event.mutable_row_change()->set_rounding(rounding);
  return Valid(std::move(event));
}

absl::StatusOr<v1::PrivacyEvent> MakeBoundedRangeEvent(double range) {
  v1::PrivacyEvent event;
  event.mutable_bounded_range()->set_range(range);
  return Valid(std::move(event));
}

absl::StatusOr<v1::PrivacyEvent> MakeCompositionEvent(const std::vector<v1::PrivacyEvent>& events) {
  v1::PrivacyEvent event;
  event.mutable_composition();
  for (const v1::PrivacyEvent& part : events) {
    *event.mutable_composition()->add_events() = part;
  }
  return Valid(std::move(event));
}

absl::StatusOr<v1::PrivacyEvent> MakeRepetitionEvent(int64_t count, const v1::PrivacyEvent& event) {
  v1::PrivacyEvent repetition;
  repetition.mutable_repetition()->set_count(count);
  *repetition.mutable_repetition()->mutable_event() = event;
  return Valid(std::move(repetition));
}

absl::StatusOr<v1::PrivacyEvent> MakeNodeSamplingEvent(double sampling_rate, const v1::PrivacyEvent& event) {
  v1::PrivacyEvent sampling;
  sampling.mutable_node_sampling()->set_sampling_rate(sampling_rate);
  *sampling.mutable_node_sampling()->mutable_event() = event;
  return Valid(std::move(sampling));
}

absl::StatusOr<v1::PrivacyEvent> MakeStageEvent(absl::string_view name, const v1::PrivacyEvent& event) {
  v1::PrivacyEvent stage;
  stage.mutable_stage()->set_name(std::string(name));
  *stage.mutable_stage()->mutable_event() = event;
  return Valid(std::move(stage));
}

absl::Status ValidateEvent(const v1::PrivacyEvent& event) { return Validator().Visit(event, "event.", 1); }

}  // namespace dpar
