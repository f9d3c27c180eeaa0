// Flags of every command that solves for approximate personalised PageRank.
#ifndef DPAR_TESTS_LAB_SOLVER_FLAGS_H_
#define DPAR_TESTS_LAB_SOLVER_FLAGS_H_

#include <cstdint>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "core/appr/solver.h"
#include "core/parallel.h"
#include "tests/lab/graph_input.h"

namespace dpar::lab {

inline constexpr int64_t kMaxThreads = 1024;

struct SolverFlags {
  GraphFlags graph;
  ApprParameters parameters;
  int threads = HardwareThreads();
  bool json = false;
};
void AddSolverFlags(CLI::App& command, SolverFlags& flags);

// INVALID_FIELD naming the flag that is out of range, before any graph is opened.
absl::Status CheckSolverFlags(const SolverFlags& flags);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_SOLVER_FLAGS_H_
