// What the command line knows of itself, written for shells and for man: from the same declarations that parse it.
#ifndef DPAR_CLIENT_CLI_COMPLETION_H_
#define DPAR_CLIENT_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace dpar {

// One command and where it stands.
struct CommandNode {
  std::vector<std::string> words;  // {"graph", "convert"}; empty for dpar itself
  const CLI::App* app = nullptr;

  [[nodiscard]] std::string Joined(const std::string& separator) const;
};

// dpar itself, and all commands that are not hidden, each before those below it.
std::vector<CommandNode> AllCommands(const CLI::App& root);

// Commands right below `app` that are not hidden, by name.
std::vector<const CLI::App*> VisibleCommands(const CLI::App& app);

// Long names with dashes, of options that are typed with one.
std::vector<std::string> LongFlags(const CLI::App& app);

// A script that completes commands, flags and files.
std::string BashCompletion(const CLI::App& root);
std::string ZshCompletion(const CLI::App& root);
std::string FishCompletion(const CLI::App& root);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_COMPLETION_H_
