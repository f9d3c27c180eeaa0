// For tests: one run of the whole command in this process.
#ifndef DPAR_CLIENT_CLI_TESTING_COMMAND_RUN_H_
#define DPAR_CLIENT_CLI_TESTING_COMMAND_RUN_H_

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/app.h"

namespace dpar::testing {

struct CommandRun {
  int exit_code = 0;
  std::string out;
  std::string err;

  // stdout as the one JSON object that --json promises; null when it is not exactly that.
  [[nodiscard]] Json json() const {
    if (out.empty() || out.find('\n') != out.size() - 1) {
      return nullptr;
    }
    Json object = Json::parse(out, nullptr, /*allow_exceptions=*/false);
    return object.is_object() ? object : Json(nullptr);
  }
};

inline CommandRun RunCommand(const std::vector<std::string>& arguments,
                             const std::map<std::string, std::string>& variables = {}, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const auto variable = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
  const Environment environment = {in, out, err, Terminal(), variable};
  CommandRun run;
  run.exit_code = RunDpar(arguments, environment);
  run.out = out.str();
  run.err = err.str();
  return run;
}

}  // namespace dpar::testing

#endif  // DPAR_CLIENT_CLI_TESTING_COMMAND_RUN_H_
