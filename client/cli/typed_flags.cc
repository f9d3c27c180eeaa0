#include "client/cli/typed_flags.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {

std::string Typed(const Flags& flags, const std::string& name) {
  const auto found = flags.find(name);
  return found == flags.end() ? "" : found->second;
}

bool IsGiven(const Flags& flags, const std::string& name) { return !Typed(flags, name).empty(); }

CLI::Option* AddFlag(CLI::App& command, Flags& flags, const std::string& name, const std::string& type,
                     const std::string& help) {
  return command.add_option(absl::StrCat("--", name), flags[name], help)->type_name(type);
}

void AddFlagWithDefault(CLI::App& command, Flags& flags, const std::string& name, const std::string& type,
                        const std::string& value, const std::string& help) {
  flags[name] = value;
  AddFlag(command, flags, name, type, help)->capture_default_str();
}

absl::StatusOr<double> ReadNumber(const Flags& flags, const std::string& name, NumberCheck check) {
  const std::string typed = Typed(flags, name);
  double value = 0;
  if (!absl::SimpleAtod(typed, &value)) {
    value = std::numeric_limits<double>::quiet_NaN();
  }
  const absl::Status checked = check(absl::StrCat("--", name), value);
  if (checked.ok()) {
    return value;
  }
  // Text has no value to show, so the message ends in what was typed.
  const std::string message(checked.message());
  return InvalidField(name, absl::StrCat(message.substr(0, message.rfind(", got ")), ", got ", typed));
}

absl::StatusOr<int64_t> ReadInteger(const Flags& flags, const std::string& name, int64_t low, int64_t high) {
  const std::string typed = Typed(flags, name);
  int64_t value = 0;
  if (absl::SimpleAtoi(typed, &value) && value >= low && value <= high) {
    return value;
  }
  return InvalidField(name, absl::StrCat("--", name, " must be an integer from ", low, " to ", high, ", got ", typed));
}

void RunWhenParsed(CLI::App& command, const std::shared_ptr<Flags>& flags, FlagsCommand run, Command& chosen) {
  command.callback([flags, run, &chosen] { chosen = [flags, run](Session& s) { return run(s, *flags); }; });
}

}  // namespace dpar
