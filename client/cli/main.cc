//   main -> RunDpar (app.h)           parses, runs one command, turns its error into text, JSON and an exit code
//             -> *_commands.cc        one file for each group of commands (commands.h)
//                  -> Session         streams, options, the connection to the server
//                  -> client/sdk      typed calls, upload, watch, download, profiles
//                  -> core/           graphs, prediction and verification on this machine, without a server
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/app.h"

int main(int argc, char** argv) {
  const dpar::Variables variables = dpar::ProcessVariable;
  const dpar::Environment environment = {std::cin, std::cout, std::cerr, dpar::DetectTerminal(variables), variables};
  return dpar::RunDpar(std::vector<std::string>(argv + 1, argv + argc), environment);
}
