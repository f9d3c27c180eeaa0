#include "tests/lab/solver_flags.h"

#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar::lab {

void AddSolverFlags(CLI::App& command, SolverFlags& flags) {
  AddGraphFlags(command, flags.graph);
  command.add_option("--alpha", flags.parameters.alpha, "Teleport probability, 0.001 to below 1")
      ->capture_default_str();
  command.add_option("--rho", flags.parameters.rho, "Sparsity, 1e-12 to 1: larger gives fewer entries")
      ->capture_default_str();
  command.add_option("--gamma", flags.parameters.gamma, "Relative tolerance, 1e-12 to 1")->capture_default_str();
  command.add_flag("--self-loops", flags.parameters.self_loops,
                   "Add an edge from every node to itself, as the paper's released code does");
  command.add_option("--threads", flags.threads, "Threads, 1 to 1024")->default_str("all cores");
  command.add_flag("--json", flags.json, "One JSON object on stdout, prose on stderr");
}

absl::Status CheckSolverFlags(const SolverFlags& flags) {
  DPAR_RETURN_IF_ERROR(ValidateParameters(flags.parameters));
  return ValidateRange("threads", int64_t{flags.threads}, int64_t{1}, kMaxThreads);
}

}  // namespace dpar::lab
