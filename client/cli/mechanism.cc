#include "client/cli/mechanism.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/format.h"
#include "core/error.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {

absl::Status CheckRate(absl::string_view flag, double value) { return ValidateRange(flag, value, 0.0, 1.0); }

absl::Status CheckNoiseMultiplier(absl::string_view flag, double value) {
  return ValidateRange(flag, value, kMinNoiseMultiplier, kMaxNoiseMultiplier);
}

namespace {

constexpr double kSensitivity = 1;

absl::Status CheckScale(absl::string_view flag, double value) {
  return ValidateRange(flag, value, kMinLaplaceScale, kMaxLaplaceScale);
}

absl::Status CheckSelectionRange(absl::string_view flag, double value) {
  return ValidateRange(flag, value, kMinPureEpsilon, kMaxPureEpsilon);
}

// Flags that only some mechanisms take.
constexpr std::array<const char*, 7> kMechanismFlags = {
    "noise-multiplier", "scale", "range", "sampling-rate", "rows", "steps", "count"};

constexpr const char* kMechanismNames = "gaussian, laplace, bounded-range, poisson-gaussian or row-mixture";

absl::StatusOr<v1::PrivacyEvent> Repeat(const absl::StatusOr<v1::PrivacyEvent>& event, int64_t count) {
  DPAR_RETURN_IF_ERROR(event.status());
  return MakeRepetitionEvent(count, *event);
}

std::string Counted(int64_t count, const std::string& noun) {
  return absl::StrCat(FormatCount(count), " ", noun, count == 1 ? "" : "s");
}

std::string SampledText(const MechanismParameters& parameters, const std::string& what) {
  return absl::StrCat(Counted(parameters.count, "step"), " of a ", what, ", rate ", parameters.sampling_rate);
}

std::vector<Mechanism> Mechanisms() {
  using P = MechanismParameters;
  return {
      {"gaussian",
       "noise-multiplier",
       CheckNoiseMultiplier,
       {},
       {"steps", "count"},
       [](const P& p) { return MakeGaussianEvent(kSensitivity, p.noise, p.count); },
       [](const P& p) { return Counted(p.count, "Gaussian mechanism"); }},
      {"laplace",
       "scale",
       CheckScale,
       {"count"},
       {},
       [](const P& p) { return Repeat(MakeLaplaceEvent(kSensitivity, p.noise), p.count); },
       [](const P& p) { return Counted(p.count, "Laplace mechanism"); }},
      {"bounded-range",
       "range",
       CheckSelectionRange,
       {"count"},
       {},
       [](const P& p) { return Repeat(MakeBoundedRangeEvent(p.noise), p.count); },
       [](const P& p) { return Counted(p.count, "selection"); }},
      {"poisson-gaussian",
       "noise-multiplier",
       CheckNoiseMultiplier,
       {"sampling-rate", "steps"},
       {},
       [](const P& p) { return Repeat(MakePoissonGaussianEvent(p.sampling_rate, kSensitivity, p.noise), p.count); },
       [](const P& p) { return SampledText(p, "Poisson-sampled Gaussian"); }},
      {"row-mixture",
       "noise-multiplier",
       CheckNoiseMultiplier,
       {"rows", "sampling-rate", "steps"},
       {},
       [](const P& p) { return Repeat(MakeRowMixtureEvent(p.rows, p.sampling_rate, kSensitivity, p.noise), p.count); },
       [](const P& p) { return SampledText(p, absl::StrCat("row mixture, ", Counted(p.rows, "row"))); }},
  };
}

absl::StatusOr<Mechanism> FindMechanism(const std::string& name) {
  for (const Mechanism& mechanism : Mechanisms()) {
    if (mechanism.name == name) {
      return mechanism;
    }
  }
  return InvalidField("mechanism", absl::StrCat("--mechanism is one of ", kMechanismNames, "; not '", name, "'"));
}

std::vector<std::string> TakenFlags(const Mechanism& mechanism, Noise noise) {
  std::vector<std::string> taken;
  if (noise == Noise::kGiven) {
    taken.push_back(mechanism.noise_flag);
  }
  taken.insert(taken.end(), mechanism.required.begin(), mechanism.required.end());
  taken.insert(taken.end(), mechanism.optional.begin(), mechanism.optional.end());
  return taken;
}

// "--scale and --count".
std::string ListFlags(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    const char* separator = i + 1 == names.size() ? " and " : ", ";
    absl::StrAppend(&list, i == 0 ? "" : separator, "--", names[i]);
  }
  return list;
}

absl::Status WrongFlag(const Mechanism& mechanism, Noise noise, const std::string& flag, const char* fault) {
  return InvalidField(flag, absl::StrCat(noise == Noise::kGiven ? "" : "to calibrate, ", "--mechanism ", mechanism.name,
                                         " takes ", ListFlags(TakenFlags(mechanism, noise)), "; --", flag, fault));
}

absl::Status CheckFlags(const Mechanism& mechanism, Noise noise, const Flags& flags) {
  const std::vector<std::string> taken = TakenFlags(mechanism, noise);
  for (const std::string flag : kMechanismFlags) {
    if (IsGiven(flags, flag) && std::find(taken.begin(), taken.end(), flag) == taken.end()) {
      return WrongFlag(mechanism, noise, flag, " is not one of them");
    }
  }
  for (const std::string& flag : taken) {
    const bool optional =
        std::find(mechanism.optional.begin(), mechanism.optional.end(), flag) != mechanism.optional.end();
    if (!optional && !IsGiven(flags, flag)) {
      return WrongFlag(mechanism, noise, flag, " is missing");
    }
  }
  if (IsGiven(flags, "steps") && IsGiven(flags, "count")) {
    return InvalidField(
        "count", absl::StrCat("--steps and --count are the same for --mechanism ", mechanism.name, "; give one"));
  }
  return absl::OkStatus();
}

// The flags were checked: those given are those that the mechanism takes.
absl::StatusOr<MechanismParameters> ReadParameters(const Mechanism& mechanism, Noise noise, const Flags& flags) {
  MechanismParameters parameters;
  if (noise == Noise::kGiven) {
    DPAR_ASSIGN_OR_RETURN(parameters.noise, ReadNumber(flags, mechanism.noise_flag, mechanism.check_noise));
  }
  if (IsGiven(flags, "sampling-rate")) {
    DPAR_ASSIGN_OR_RETURN(parameters.sampling_rate, ReadNumber(flags, "sampling-rate", CheckRate));
  }
  if (IsGiven(flags, "rows")) {
    DPAR_ASSIGN_OR_RETURN(parameters.rows, ReadInteger(flags, "rows", 1, kMaxEventRows));
  }
  for (const std::string flag : {"steps", "count"}) {
    if (IsGiven(flags, flag)) {
      DPAR_ASSIGN_OR_RETURN(parameters.count, ReadInteger(flags, flag, 1, kMaxEventCount));
    }
  }
  if (IsGiven(flags, "node-sampling-rate")) {
    DPAR_ASSIGN_OR_RETURN(parameters.node_sampling_rate, ReadNumber(flags, "node-sampling-rate", CheckRate));
  }
  return parameters;
}

}  // namespace

absl::StatusOr<Computation> ReadComputation(Noise noise, const Flags& flags) {
  Computation computation;
  DPAR_ASSIGN_OR_RETURN(computation.mechanism, FindMechanism(Typed(flags, "mechanism")));
  const Mechanism& mechanism = computation.mechanism;
  DPAR_RETURN_IF_ERROR(CheckFlags(mechanism, noise, flags));
  DPAR_ASSIGN_OR_RETURN(computation.parameters, ReadParameters(mechanism, noise, flags));
  DPAR_ASSIGN_OR_RETURN(computation.event, mechanism.make_event(computation.parameters));
  if (const auto rate = computation.parameters.node_sampling_rate; rate.has_value()) {
    DPAR_ASSIGN_OR_RETURN(computation.event, MakeNodeSamplingEvent(*rate, computation.event));
  }
  return computation;
}

std::string NoiseText(const Mechanism& mechanism, const std::string& value) {
  return absl::StrCat(absl::StrReplaceAll(mechanism.noise_flag, {{"-", " "}}), " ", value);
}

void PrintComputation(Session& session, const Computation& computation, Noise noise) {
  const MechanismParameters& parameters = computation.parameters;
  session.out() << computation.mechanism.describe(parameters);
  if (noise == Noise::kGiven) {
    session.out() << ", " << NoiseText(computation.mechanism, absl::StrCat(parameters.noise));
  }
  session.out() << "\n";
  if (parameters.node_sampling_rate.has_value()) {
    session.out() << "on a secret sample of the nodes, rate " << absl::StrCat(*parameters.node_sampling_rate) << "\n";
  }
}

void AddMechanismFlags(CLI::App& command, Flags& flags, Noise noise) {
  AddFlag(command, flags, "mechanism", "NAME", kMechanismNames)->required();
  const std::vector<CLI::Option*> of_noise = {
      AddFlag(command, flags, "noise-multiplier", "FLOAT",
              "Standard deviation / sensitivity (gaussian, poisson-gaussian, row-mixture)"),
      AddFlag(command, flags, "scale", "FLOAT", "Scale / sensitivity (laplace)"),
      AddFlag(command, flags, "range", "FLOAT", "Range of a selection's privacy losses (bounded-range)")};
  if (noise == Noise::kSought) {
    // Hidden but still parsed, so that the error can say what the mechanism takes here.
    for (CLI::Option* option : of_noise) {
      option->group("");
    }
  }
  AddFlag(command, flags, "sampling-rate", "FLOAT",
          "Chance of a row to be in a step's batch, 0 to 1 (poisson-gaussian, row-mixture)");
  AddFlag(command, flags, "rows", "INT", "Rows that a node has (row-mixture)");
  AddFlag(command, flags, "steps", "INT", "Steps (poisson-gaussian, row-mixture; gaussian, where it is 1 by default)");
  AddFlag(command, flags, "count", "INT", "Times (laplace, bounded-range; gaussian, instead of --steps)");
  AddFlag(command, flags, "node-sampling-rate", "FLOAT",
          "Chance of a node to be kept, once and secretly, before all of it (any mechanism)");
}

}  // namespace dpar
