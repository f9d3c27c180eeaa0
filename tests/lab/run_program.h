// Programs that the lab calls.
#ifndef DPAR_TESTS_LAB_RUN_PROGRAM_H_
#define DPAR_TESTS_LAB_RUN_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace dpar::lab {

// Runs a program, found by $PATH, and waits for it. What it prints on stdout goes nowhere, so that ours holds our
// result alone; its stderr is ours. NOT_FOUND when there is no such program, INTERNAL when it does not end with 0.
absl::Status RunProgram(const std::vector<std::string>& command);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_RUN_PROGRAM_H_
