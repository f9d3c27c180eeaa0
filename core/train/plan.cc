#include "core/train/plan.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kGradientClip = 0.3;
constexpr double kMomentum = 0.9;
constexpr int64_t kMinSteps = 30;
constexpr int64_t kMaxSteps = 150;
constexpr int64_t kMaxChosenSteps = 100'000;
// A finer lattice adds less to the sensitivity; a coarser one hides more of the sampler's low bits. At 24 the lattice
// costs about 0.1% of noise on a graph with 100,000 parameters.
constexpr int kLatticeBits = 24;
// Relative step by which the noise is raised until the exact profile meets (epsilon, delta).
constexpr double kNoiseNudge = 1e-12;

absl::Status NotImplemented(absl::string_view field, absl::string_view what) {
  return MakeError(absl::StatusCode::kUnimplemented, v1::NOT_IMPLEMENTED,
                   absl::StrCat(what, " is not available on this server"), {{"field", std::string(field)}});
}

absl::Status ValidateSpec(const v1::TrainingSpec& spec, const PublicSizes& sizes) {
  DPAR_RETURN_IF_ERROR(ValidateRange("epsilon", spec.epsilon(), kMinEpsilon, kMaxEpsilon));
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", spec.delta()));
  DPAR_RETURN_IF_ERROR(ValidateRange("delta", spec.delta(), kMinDelta, 1.0));
  DPAR_RETURN_IF_ERROR(ValidateRange("node_count", sizes.node_count, int64_t{1}, int64_t{1} << 31));
  DPAR_RETURN_IF_ERROR(ValidateRange("feature_count", sizes.feature_count, int64_t{1}, int64_t{1} << 31));
  DPAR_RETURN_IF_ERROR(ValidateRange("class_count", sizes.class_count, int64_t{2}, int64_t{1} << 31));
  if (!v1::Method_IsValid(spec.method())) {
    return InvalidField("method", "method is unknown; use auto or features");
  }
  if (spec.method() > v1::FEATURES) {
    return NotImplemented("method", absl::StrCat("method ", v1::Method_Name(spec.method())));
  }
  if (spec.accountant() == v1::AS_PUBLISHED) {
    return NotImplemented("accountant", "AS_PUBLISHED accounting");
  }
  if (spec.non_private()) {
    return NotImplemented("non_private", "training without noise");
  }
  if (spec.has_seed()) {
    return NotImplemented("seed", "a fixed seed");
  }
  if (spec.has_evaluation()) {
    return NotImplemented("evaluation", "a charged evaluation");
  }
  return absl::OkStatus();
}

// Only what method `features` reads may be set.
absl::Status ValidateOptions(const v1::TrainingOptions& options) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  options.GetReflection()->ListFields(options, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    const std::string& name = field->name();
    if (name != "steps" && name != "learning_rate" && name != "gradient_clip" && name != "momentum") {
      return InvalidField(absl::StrCat("options.", name), absl::StrCat("method features does not read ", name));
    }
  }
  if (options.has_steps()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("options.steps", options.steps(), int64_t{1}, kMaxChosenSteps));
  }
  if (options.has_learning_rate()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("options.learning_rate", options.learning_rate(), 1e-9, 1e9));
  }
  if (options.has_gradient_clip()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("options.gradient_clip", options.gradient_clip(), 1e-6, 1e3));
  }
  if (options.has_momentum()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("options.momentum", options.momentum(), 0.0, 0.999));
  }
  return absl::OkStatus();
}

// Bound on the l2 error of summing n vectors of norm at most C in double, in any order: each coordinate is off by at
// most (n + 8) u times the sum of its absolute values (the 8 covers the roundings of one row's own gradient), and those
// sums have norm at most n C. u = 2^-53; the factor 2 covers higher orders for every n below 2^50.
double SummationError(int64_t n, double clip) {
  const auto count = static_cast<double>(n);
  return 0x1p-52 * (count + 8) * count * clip;
}

// Sets the event for noise multiplier s: T Gaussians of sensitivity C + g sqrt(D) + 2E.
void SetEvent(double multiplier, double lattice_root, v1::Plan& plan) {
  plan.set_noise_multiplier(multiplier);
  const double stddev = multiplier * plan.gradient_clip();
  v1::GaussianEvent& event = *plan.mutable_event()->mutable_gaussian();
  event.set_noise_stddev(stddev);
  event.set_sensitivity(plan.gradient_clip() + stddev * lattice_root + 2 * plan.summation_error());
  event.set_count(plan.steps());
}

// The smallest noise that meets (epsilon, delta), rounded up. With r = 2^-k sqrt(D), mu = sqrt(T) (C + s C r + 2E) / (s
// C) solves to s = sqrt(T) (1 + 2E/C) / (mu - sqrt(T) r).
absl::Status Calibrate(double mu, const PublicSizes& sizes, v1::Plan& plan) {
  const double dimensions = static_cast<double>(sizes.feature_count + 1) * static_cast<double>(sizes.class_count);
  const double lattice_root = std::ldexp(std::sqrt(dimensions), -plan.lattice_bits());
  const double root_steps = std::sqrt(static_cast<double>(plan.steps()));
  const double room = mu - root_steps * lattice_root;
  const double clip = plan.gradient_clip();
  double multiplier = root_steps * (clip + 2 * plan.summation_error()) / (clip * room);
  if (!(room > 0) || !std::isfinite(multiplier)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_UNREACHABLE,
                     absl::StrCat("no noise meets epsilon ", plan.epsilon(), " and delta ", plan.delta(), " in ",
                                  plan.steps(), " steps over ", dimensions, " parameters; ask for a larger epsilon"),
                     {{"epsilon", absl::StrCat(plan.epsilon())}, {"delta", absl::StrCat(plan.delta())}});
  }
  for (double nudge = kNoiseNudge;; nudge *= 2) {
    SetEvent(multiplier, lattice_root, plan);
    DPAR_ASSIGN_OR_RETURN(const double epsilon, EventEpsilon(plan.event(), plan.delta()));
    if (epsilon <= plan.epsilon()) {
      return absl::OkStatus();
    }
    multiplier *= 1 + nudge;
  }
}

}  // namespace

absl::StatusOr<v1::Plan> MakePlan(const v1::TrainingSpec& spec, const PublicSizes& sizes) {
  DPAR_RETURN_IF_ERROR(ValidateSpec(spec, sizes));
  DPAR_RETURN_IF_ERROR(ValidateOptions(spec.options()));
  DPAR_ASSIGN_OR_RETURN(const double mu, GaussianMu(spec.epsilon(), spec.delta()));
  const auto n = static_cast<double>(sizes.node_count);
  const double reach = 0.38 * std::pow(n * mu, 0.85);
  const v1::TrainingOptions& options = spec.options();

  v1::Plan plan;
  plan.set_method(v1::FEATURES);
  plan.set_training_slots(sizes.node_count);
  plan.set_epsilon(spec.epsilon());
  plan.set_delta(spec.delta());
  plan.set_accountant(v1::SOUND);
  const double steps =
      std::clamp(std::round(3 * std::sqrt(reach)), static_cast<double>(kMinSteps), static_cast<double>(kMaxSteps));
  plan.set_steps(options.has_steps() ? options.steps() : static_cast<int64_t>(steps));
  plan.set_gradient_clip(options.has_gradient_clip() ? options.gradient_clip() : kGradientClip);
  plan.set_learning_rate(options.has_learning_rate()
                             ? options.learning_rate()
                             : reach / (static_cast<double>(plan.steps()) * plan.gradient_clip()));
  plan.set_momentum(options.has_momentum() ? options.momentum() : kMomentum);
  plan.set_lattice_bits(kLatticeBits);
  plan.set_summation_error(SummationError(sizes.node_count, plan.gradient_clip()));
  DPAR_RETURN_IF_ERROR(Calibrate(mu, sizes, plan));
  plan.set_logit_noise(10 * plan.learning_rate() * static_cast<double>(plan.steps()) * plan.gradient_clip() / (mu * n));
  return plan;
}

absl::StatusOr<double> EpsilonAfter(const v1::Plan& plan, int64_t steps) {
  if (steps <= 0) {
    return 0.0;
  }
  v1::PrivacyEvent event = plan.event();
  event.mutable_gaussian()->set_count(std::min(steps, plan.steps()));
  return EventEpsilon(event, plan.delta());
}

}  // namespace dpar
