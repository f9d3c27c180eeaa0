#ifndef DPAR_CLIENT_CLI_APP_H_
#define DPAR_CLIENT_CLI_APP_H_

#include <string>
#include <vector>

#include "client/cli/session.h"

namespace dpar {

// Runs `dpar` with these arguments, without the program's name. Returns the exit code.
int RunDpar(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_APP_H_
