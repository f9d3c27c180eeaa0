#ifndef DPAR_CLIENT_CLI_COMPLETION_H_
#define DPAR_CLIENT_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace dpar {

struct CommandNode {
  std::vector<std::string> words;  // {"graph", "convert"}; empty for dpar itself
  const CLI::App* app = nullptr;

  [[nodiscard]] std::string Joined(const std::string& separator) const;
};

// dpar itself, and all commands that are not hidden, each before those below it.
std::vector<CommandNode> AllCommands(const CLI::App& root);

// Commands right below `app` that are not hidden, by name.
std::vector<const CLI::App*> VisibleCommands(const CLI::App& app);

// Flags or commands that may follow these words: a line for each, with its help after a tab.
std::string Candidates(const CLI::App& root, const std::vector<std::string>& words, bool flags);

// A script for bash, zsh or fish that offers these candidates, and files. Empty for another shell.
std::string CompletionScript(const std::string& shell);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_COMPLETION_H_
