// Flags of `dpar train`: one for every field of v1.TrainingOptions, made from its definition.
#ifndef DPAR_CLIENT_CLI_TRAINING_FLAGS_H_
#define DPAR_CLIENT_CLI_TRAINING_FLAGS_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "client/cli/typed_flags.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

inline constexpr const char* kStructureFlags = "Structure, for dpar-em0, dpar-em1 and dpar-gm";
inline constexpr const char* kDescentFlags = "Training; what is left out follows from the public sizes";

void AddTrainingFlags(CLI::App& command, Flags& flags);

// INVALID_ARGUMENT names the flag, what is allowed and what was typed. The server checks whether numbers are in range.
absl::StatusOr<v1::TrainingOptions> ReadTrainingFlags(const Flags& flags);

// "top-k" for top_k.
std::string TrainingFlagName(const google::protobuf::FieldDescriptor& field);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_TRAINING_FLAGS_H_
