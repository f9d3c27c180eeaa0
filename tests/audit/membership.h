// Membership inference as a data owner would fear it: whoever has the released model and a node's features and label
// guesses whether the node was trained on, from the model's loss on it (Yeom, Giacomelli, Fredrikson and Jha 2018).
#ifndef DPAR_TESTS_AUDIT_MEMBERSHIP_H_
#define DPAR_TESTS_AUDIT_MEMBERSHIP_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dpar/v1/training.pb.h"

namespace dpar::audit {

struct MembershipOptions {
  int64_t nodes = 2000;  // half of them are trained on
  int64_t splits = 10;   // of the same graph
  uint64_t seed = 1;
  int threads = 1;
};

// The probability that a member's score is above that of another node, ties counting half.
double AreaUnderCurve(std::span<const double> members, std::span<const double> others);

struct MembershipRisk {
  std::string method;
  double epsilon = 0;  // 0: without noise
  double mean = 0;     // of the area under the curve over the splits
  double deviation = 0;
};
MembershipRisk AttackMembers(v1::Method method, double epsilon, const MembershipOptions& options);

// Every method without noise and at epsilon 1, 4 and 8.
std::vector<MembershipRisk> AttackAllMembers(const MembershipOptions& options);
std::string Table(const std::vector<MembershipRisk>& risks);

}  // namespace dpar::audit

#endif  // DPAR_TESTS_AUDIT_MEMBERSHIP_H_
