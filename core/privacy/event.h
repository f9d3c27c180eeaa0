// Privacy events: mechanisms and trees of them, as protocol buffers. These functions build valid ones, check others,
// and write and read them as JSON. Neighbours: node removal in zero-out form, both directions.
#ifndef DPAR_CORE_PRIVACY_EVENT_H_
#define DPAR_CORE_PRIVACY_EVENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

inline constexpr int64_t kMaxEventCount = 1'000'000'000;
inline constexpr int64_t kMaxEventRows = 10'000;
inline constexpr int kMaxEventDepth = 16;
inline constexpr int kMaxEventNodes = 4096;
inline constexpr int kMaxSamplingDepth = 2;  // samples of samples
// noise_stddev / sensitivity of a sampled Gaussian.
inline constexpr double kMinNoiseMultiplier = 0.01;
inline constexpr double kMaxNoiseMultiplier = 1e9;
// scale / sensitivity of a Laplace mechanism, and the range of a selection.
inline constexpr double kMinLaplaceScale = 1e-3;
inline constexpr double kMaxLaplaceScale = 1e9;
inline constexpr double kMinPureEpsilon = 1e-9;
inline constexpr double kMaxPureEpsilon = 1e3;

// INVALID_ARGUMENT, naming the parameter and its range, unless sensitivity, noise_stddev, scale are finite and above 0,
// sampling_rate is 0..1, count 1..kMaxEventCount, rows 1..kMaxEventRows, changed_rows 0..kMaxEventRows, rounding finite
// and at least 0, and the ratio of noise to sensitivity within the limits above.
absl::StatusOr<v1::PrivacyEvent> MakeGaussianEvent(double sensitivity, double noise_stddev, int64_t count);
absl::StatusOr<v1::PrivacyEvent> MakeLaplaceEvent(double sensitivity, double scale);
absl::StatusOr<v1::PrivacyEvent> MakePoissonGaussianEvent(double sampling_rate, double sensitivity,
                                                          double noise_stddev);
absl::StatusOr<v1::PrivacyEvent> MakeRowMixtureEvent(int64_t rows, double sampling_rate, double sensitivity,
                                                     double noise_stddev);
absl::StatusOr<v1::PrivacyEvent> MakeRowChangeEvent(int64_t changed_rows, double sampling_rate, double sensitivity,
                                                    double noise_stddev, double rounding);
absl::StatusOr<v1::PrivacyEvent> MakeBoundedRangeEvent(double range);
// An empty composition is valid: nothing was released.
absl::StatusOr<v1::PrivacyEvent> MakeCompositionEvent(const std::vector<v1::PrivacyEvent>& events);
absl::StatusOr<v1::PrivacyEvent> MakeRepetitionEvent(int64_t count, const v1::PrivacyEvent& event);
absl::StatusOr<v1::PrivacyEvent> MakeNodeSamplingEvent(double sampling_rate, const v1::PrivacyEvent& event);
// `name` is 1 to 32 characters of [a-z0-9-].
absl::StatusOr<v1::PrivacyEvent> MakeStageEvent(absl::string_view name, const v1::PrivacyEvent& event);

// Whether the event could have been made by the functions above, and its tree is within the limits.
absl::Status ValidateEvent(const v1::PrivacyEvent& event);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_EVENT_H_
