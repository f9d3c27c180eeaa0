// Options kept as they were typed, so that one place parses them and its message can show what was typed.
#ifndef DPAR_CLIENT_CLI_TYPED_FLAGS_H_
#define DPAR_CLIENT_CLI_TYPED_FLAGS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/session.h"

namespace dpar {

// By name without dashes; empty unless given.
using Flags = std::map<std::string, std::string>;

std::string Typed(const Flags& flags, const std::string& name);
bool IsGiven(const Flags& flags, const std::string& name);

CLI::Option* AddFlag(CLI::App& command, Flags& flags, const std::string& name, const std::string& type,
                     const std::string& help);
// A default that is shown in --help and used unless the flag is given.
void AddFlagWithDefault(CLI::App& command, Flags& flags, const std::string& name, const std::string& type,
                        const std::string& value, const std::string& help);

// OK if the value is allowed, which NaN never is; otherwise a message "FLAG must be ..., got VALUE".
using NumberCheck = absl::Status (*)(absl::string_view flag, double value);

// INVALID_ARGUMENT names the flag, what is allowed and what was typed.
absl::StatusOr<double> ReadNumber(const Flags& flags, const std::string& name, NumberCheck check);
absl::StatusOr<int64_t> ReadInteger(const Flags& flags, const std::string& name, int64_t low, int64_t high);

using FlagsCommand = absl::StatusOr<int> (*)(Session& session, const Flags& flags);
void RunWhenParsed(CLI::App& command, const std::shared_ptr<Flags>& flags, FlagsCommand run, Command& chosen);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_TYPED_FLAGS_H_
