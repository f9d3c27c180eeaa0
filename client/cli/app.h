// The whole command: parsing, running, exit code.
#ifndef DPAR_CLIENT_CLI_APP_H_
#define DPAR_CLIENT_CLI_APP_H_

#include <string>
#include <vector>

#include "client/cli/session.h"

namespace dpar {

// Runs `dpar` with these arguments (without the program's name) and returns its exit code.
int RunDpar(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_APP_H_
