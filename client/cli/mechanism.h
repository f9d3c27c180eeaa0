// A mechanism as the flags of dpar privacy describe it. The unit of its noise is what one node changes.
#ifndef DPAR_CLIENT_CLI_MECHANISM_H_
#define DPAR_CLIENT_CLI_MECHANISM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "client/cli/typed_flags.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

struct MechanismParameters {
  double noise = 1;  // the value of the mechanism's noise flag
  double sampling_rate = 0;
  int64_t rows = 1;
  int64_t count = 1;
  std::optional<double> node_sampling_rate;
};

struct Mechanism {
  std::string name;
  std::string noise_flag;
  NumberCheck check_noise = nullptr;
  std::vector<std::string> required;  // flags, besides that of the noise
  std::vector<std::string> optional;
  absl::StatusOr<v1::PrivacyEvent> (*make_event)(const MechanismParameters& parameters) = nullptr;
  std::string (*describe)(const MechanismParameters& parameters) = nullptr;  // all but the noise
};

enum class Noise { kGiven, kSought };

struct Computation {
  Mechanism mechanism;
  MechanismParameters parameters;
  v1::PrivacyEvent event;  // at noise 1 while the noise is sought
};

void AddMechanismFlags(CLI::App& command, Flags& flags, Noise noise);
// INVALID_ARGUMENT for a flag that is missing, surplus or out of range.
absl::StatusOr<Computation> ReadComputation(Noise noise, const Flags& flags);

// "noise multiplier 1", "scale 2", "range 0.1".
std::string NoiseText(const Mechanism& mechanism, const std::string& value);
// Leaves out the noise while it is sought.
void PrintComputation(Session& session, const Computation& computation, Noise noise);

absl::Status CheckRate(absl::string_view flag, double value);
absl::Status CheckNoiseMultiplier(absl::string_view flag, double value);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_MECHANISM_H_
