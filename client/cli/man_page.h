#ifndef DPAR_CLIENT_CLI_MAN_PAGE_H_
#define DPAR_CLIENT_CLI_MAN_PAGE_H_

#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/completion.h"

namespace dpar {

// "dpar-graph-convert.1".
std::string ManFileName(const CommandNode& node);

// The page in troff with the man macros. Examples stand between .EX and .EE, a command a line.
std::string ManPage(const CLI::App& root, const CommandNode& node);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_MAN_PAGE_H_
