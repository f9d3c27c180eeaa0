#include <cmath>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/mechanism.h"
#include "client/cli/typed_flags.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/privacy/accountant.h"
#include "core/privacy/calibrate.h"
#include "core/privacy/event.h"
#include "core/privacy/flat_event.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

absl::Status CheckEpsilon(absl::string_view flag, double value) {
  if (value >= 0 && std::isfinite(value)) {
    return absl::OkStatus();
  }
  return InvalidField(flag, absl::StrCat(flag, " must be finite and at least 0, got ", value));
}

absl::Status CheckTargetEpsilon(absl::string_view flag, double value) {
  return ValidatePositive(flag, value, kMaxTargetEpsilon);
}

absl::StatusOr<int> RunEpsilon(Session& session, const Flags& flags) {
  DPAR_ASSIGN_OR_RETURN(const Computation computation, ReadComputation(Noise::kGiven, flags));
  DPAR_ASSIGN_OR_RETURN(const double delta, ReadNumber(flags, "delta", ValidateProbability));
  DPAR_ASSIGN_OR_RETURN(const double epsilon, EventEpsilon(computation.event, delta));
  DPAR_ASSIGN_OR_RETURN(const double remove, EventEpsilon(computation.event, delta, Direction::kRemove));
  DPAR_ASSIGN_OR_RETURN(const double add, EventEpsilon(computation.event, delta, Direction::kAdd));
  if (session.json()) {
    session.PrintJson({{"epsilon", epsilon},
                       {"delta", delta},
                       {"epsilon_remove", remove},
                       {"epsilon_add", add},
                       {"accountant", v1::Accountant_Name(v1::SOUND)},
                       {"event", MessageToJson(computation.event)}});
    return kDone;
  }
  session.out() << "epsilon " << FormatNumberUp(epsilon) << " at delta " << FormatNumberUp(delta) << "\n";
  PrintComputation(session, computation, Noise::kGiven);
  session.out() << "removing a node: epsilon " << FormatNumberUp(remove) << "; adding one: epsilon "
                << FormatNumberUp(add) << "\n";
  return kDone;
}

void AddEpsilon(CLI::App& group, Command& chosen) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = group.add_subcommand("epsilon", "What a mechanism costs: epsilon at a delta");
  AddMechanismFlags(*command, *flags, Noise::kGiven);
  AddFlag(*command, *flags, "delta", "FLOAT", "Above 0 and below 1")->required();
  command->footer(
      Examples("  dpar privacy epsilon --mechanism poisson-gaussian --sampling-rate 0.01 --noise-multiplier 1 \\\n"
               "      --steps 5000 --delta 1e-5\n"
               "  dpar privacy epsilon --mechanism laplace --scale 2 --count 10 --delta 1e-5"));
  RunWhenParsed(*command, flags, RunEpsilon, chosen);
}

absl::StatusOr<int> RunDelta(Session& session, const Flags& flags) {
  DPAR_ASSIGN_OR_RETURN(const Computation computation, ReadComputation(Noise::kGiven, flags));
  DPAR_ASSIGN_OR_RETURN(const double epsilon, ReadNumber(flags, "epsilon", CheckEpsilon));
  DPAR_ASSIGN_OR_RETURN(const double delta, EventDelta(computation.event, epsilon));
  if (session.json()) {
    session.PrintJson({{"delta", delta},
                       {"epsilon", epsilon},
                       {"accountant", v1::Accountant_Name(v1::SOUND)},
                       {"event", MessageToJson(computation.event)}});
    return kDone;
  }
  session.out() << "delta " << FormatNumberUp(delta) << " at epsilon " << FormatNumberUp(epsilon) << "\n";
  PrintComputation(session, computation, Noise::kGiven);
  session.out() << "the larger of removing a node and adding one\n";
  return kDone;
}

void AddDelta(CLI::App& group, Command& chosen) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = group.add_subcommand("delta", "What a mechanism costs: delta at an epsilon");
  AddMechanismFlags(*command, *flags, Noise::kGiven);
  AddFlag(*command, *flags, "epsilon", "FLOAT", "At least 0")->required();
  command->footer(Examples("  dpar privacy delta --mechanism gaussian --noise-multiplier 1 --steps 10 --epsilon 4"));
  RunWhenParsed(*command, flags, RunDelta, chosen);
}

struct Calibration {
  double target_epsilon = 0;
  double delta = 0;
  double noise = 0;    // 0 if none is needed
  double epsilon = 0;  // what the noise costs
  v1::PrivacyEvent event;
};

absl::StatusOr<Calibration> Calibrate(const v1::PrivacyEvent& at_noise_1, const Flags& flags) {
  Calibration calibration;
  DPAR_ASSIGN_OR_RETURN(calibration.target_epsilon, ReadNumber(flags, "epsilon", CheckTargetEpsilon));
  DPAR_ASSIGN_OR_RETURN(calibration.delta, ReadNumber(flags, "delta", ValidateProbability));
  const auto event_at = [&at_noise_1](double x) { return ScaleNoise(at_noise_1, x); };
  DPAR_ASSIGN_OR_RETURN(calibration.noise, CalibrateNoise(event_at, calibration.target_epsilon, calibration.delta));
  if (calibration.noise > 0) {
    calibration.event = event_at(calibration.noise);
    DPAR_ASSIGN_OR_RETURN(calibration.epsilon, EventEpsilon(calibration.event, calibration.delta));
  }
  return calibration;
}

Json CalibrationJson(const Mechanism& mechanism, const Calibration& calibration) {
  const bool noisy = calibration.noise > 0;
  Json json = {{"noise_multiplier", calibration.noise}};
  if (mechanism.noise_flag == "scale") {
    json["scale"] = calibration.noise;
  }
  if (mechanism.noise_flag == "range") {
    json["range"] = noisy ? Json(1 / calibration.noise) : Json(nullptr);
  }
  json["epsilon"] = calibration.epsilon;
  json["target_epsilon"] = calibration.target_epsilon;
  json["delta"] = calibration.delta;
  json["accountant"] = v1::Accountant_Name(v1::SOUND);
  json["event"] = noisy ? MessageToJson(calibration.event) : Json(nullptr);
  return json;
}

// Noise must be enough as it is shown: a multiplier or a scale is rounded up, a range down.
std::string CalibratedNoiseText(const Mechanism& mechanism, double noise) {
  return NoiseText(mechanism, mechanism.noise_flag == "range" ? FormatNumberDown(1 / noise) : FormatNumberUp(noise));
}

absl::StatusOr<int> RunCalibrate(Session& session, const Flags& flags) {
  DPAR_ASSIGN_OR_RETURN(const Computation computation, ReadComputation(Noise::kSought, flags));
  DPAR_ASSIGN_OR_RETURN(const Calibration calibration, Calibrate(computation.event, flags));
  if (session.json()) {
    session.PrintJson(CalibrationJson(computation.mechanism, calibration));
    return kDone;
  }
  if (calibration.noise > 0) {
    session.out() << CalibratedNoiseText(computation.mechanism, calibration.noise) << " costs epsilon "
                  << FormatNumberUp(calibration.epsilon) << " at delta " << FormatNumberUp(calibration.delta) << "\n";
  } else {
    session.out() << "no noise is needed: the chance that a node is sampled at all is at most\ndelta "
                  << FormatNumberUp(calibration.delta) << "\n";
  }
  PrintComputation(session, computation, Noise::kSought);
  session.out() << "asked for: epsilon " << Typed(flags, "epsilon") << " or less\n";
  return kDone;
}

void AddCalibrate(CLI::App& group, Command& chosen) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = group.add_subcommand("calibrate", "Find the least noise that meets an epsilon at a delta");
  AddMechanismFlags(*command, *flags, Noise::kSought);
  AddFlag(*command, *flags, "epsilon", "FLOAT", "Above 0 and at most 10000")->required();
  AddFlag(*command, *flags, "delta", "FLOAT", "Above 0 and below 1")->required();
  command->footer(
      Examples("  dpar privacy calibrate --mechanism poisson-gaussian --sampling-rate 0.01 --steps 5000 \\\n"
               "      --epsilon 1 --delta 1e-5"));
  RunWhenParsed(*command, flags, RunCalibrate, chosen);
}

}  // namespace

void AddPrivacyCommands(CLI::App& app, Command& chosen) {
  CLI::App* group =
      AddCommandGroup(app, "privacy", "epsilon, delta, calibrate or compare: what mechanisms cost", kLocalGroup);
  AddEpsilon(*group, chosen);
  AddDelta(*group, chosen);
  AddCalibrate(*group, chosen);
  AddCompareCommand(*group, chosen);
}

}  // namespace dpar
