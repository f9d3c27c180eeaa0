// What the audit's programs share: their flags, and their exit codes.
#ifndef DPAR_TESTS_AUDIT_PROGRAM_H_
#define DPAR_TESTS_AUDIT_PROGRAM_H_

#include <functional>

#include "tests/audit/audit.h"

namespace dpar::audit {

// Times the runs of a quick audit.
inline constexpr int64_t kFullEffort = 10;

// Flags: --quick or --full, --seed N, --threads N. Exit codes: 0 passed, 1 did not or could not be run, 2 usage.
int Main(const char* name, int argc, char** argv, const std::function<int(const AuditOptions& options)>& run);

}  // namespace dpar::audit

#endif  // DPAR_TESTS_AUDIT_PROGRAM_H_
