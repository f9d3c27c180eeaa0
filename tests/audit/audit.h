// The audit: every case attacked, and the tables that are printed.
#ifndef DPAR_TESTS_AUDIT_AUDIT_H_
#define DPAR_TESTS_AUDIT_AUDIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/audit/case.h"

namespace dpar::audit {

struct AuditOptions {
  int64_t effort = 1;  // times the runs of a quick audit
  uint64_t seed = 1;   // of all runs; an audit with the same seed is the same audit
  int threads = 2;
};

// The probability with which an audit of sound code may say that a claim is exceeded, all its cases together.
inline constexpr double kFamilyError = 0.01;

// A number that the case's epsilon is not below, but with probability `error` at most. `fault` is that of Case::make.
double Attack(const Case& one, const AuditOptions& options, double error, double fault = 1);

struct Finding {
  std::string mechanism;
  std::string input;
  double claim = 0;
  double bound = 0;
  bool exceeded = false;   // the claim is wrong
  bool too_loose = false;  // the attack on a tight mechanism proves less than half of what is claimed
};
std::vector<Finding> AttackAll(const std::vector<Case>& cases, const AuditOptions& options);
bool Passed(const std::vector<Finding>& findings);
std::string Table(const std::vector<Finding>& findings);

// How small a fault is found. Of each mechanism, the first case that is tight is attacked with faults (Case::make) of
// 0.95, 0.90, ...; of two efforts, `found` is the largest that the audit notices, 0 for none.
struct Sharpness {
  std::string mechanism;
  std::string input;
  std::vector<double> found;  // by effort
};
std::vector<Sharpness> SmallestFaults(const std::vector<Case>& cases, const AuditOptions& options,
                                      const std::vector<int64_t>& efforts);
std::string Table(const std::vector<Sharpness>& mechanisms);

// What no sample of releases shows. Each answers "" or what is wrong.
std::string CheckFreshNoise();  // two production sources do not give the same noise
std::string CheckProgress();    // progress on two neighbours is the same, call by call

}  // namespace dpar::audit

#endif  // DPAR_TESTS_AUDIT_AUDIT_H_
