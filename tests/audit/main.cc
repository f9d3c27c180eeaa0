// dpar-audit: attacks every mechanism of the production code. Run by `dpar-lab audit`.
#include <exception>
#include <iostream>
#include <string>

#include "tests/audit/audit.h"
#include "tests/audit/membership.h"
#include "tests/audit/one_run.h"
#include "tests/audit/program.h"

namespace dpar::audit {
namespace {

// Only a full audit has the time.
bool RunTheRest(const AuditOptions& options) {
  std::cout << "\n" << Table(SmallestFaults(AllCases(), options, {1, options.effort})) << std::flush;
  const std::vector<OneRun> runs = OneRunAudits({.seed = options.seed, .threads = options.threads});
  std::cout << "\n" << Table(runs) << std::flush;
  const std::vector<MembershipRisk> risks = AttackAllMembers({.seed = options.seed, .threads = options.threads});
  std::cout << "\n" << Table(risks) << std::flush;
  return Passed(runs);
}

int Run(const AuditOptions& options) {
  const std::vector<Finding> findings = AttackAll(AllCases(), options);
  std::cout << Table(findings);
  bool passed = Passed(findings);
  for (const auto& [name, fault] :
       {std::pair("fresh noise", CheckFreshNoise()), std::pair("progress", CheckProgress())}) {
    std::cout << name << ": " << (fault.empty() ? "holds" : "FAILED, " + fault) << "\n";
    passed = passed && fault.empty();
  }
  return passed && (options.effort == 1 || RunTheRest(options)) ? 0 : 1;
}

}  // namespace
}  // namespace dpar::audit

int main(int argc, char** argv) { return dpar::audit::Main("dpar-audit", argc, argv, dpar::audit::Run); }
