// What the audit attacks: a mechanism as the trainer calls it, on two neighbouring graphs, with the accountant's claim.
#ifndef DPAR_TESTS_AUDIT_CASE_H_
#define DPAR_TESTS_AUDIT_CASE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/random/random.h"

namespace dpar::audit {

// All cases claim at this delta, which the service would give to a graph of 10 slots, and these graphs are of that
// size. At a smaller one, events of the same weight prove less, and the same bounds take more runs.
inline constexpr double kDelta = 1e-2;

// Draws one release on one of the graphs. Not thread-safe: one for each thread.
using Release = std::function<void(RandomSource& random, std::span<double> out)>;

struct Case {
  std::string mechanism;
  std::string input;   // what was made null
  double claim = 0;    // epsilon at kDelta, by the accountant
  bool tight = false;  // whether a node can cost what is claimed, so that a bound far below would show a weak attack
  int64_t runs = 0;    // on each graph, in a quick audit
  size_t width = 0;    // numbers in a release
  // A release with a noise that is `fault` times the planned one, or at node sampling a rate that is so many times less
  // than the true one; 1 for sound code.
  std::function<Release(bool with, double fault)> make;
};

// The mechanisms, each with its worst inputs:
//   hub       the middle of a star; for methods that need a degree promise, one with as many leaves as promised
//   outlier   a node with features of 1e30, or against all others
//   lone      a node that shares neither feature nor neighbour with others
//   listed    a node in max_occurrence rows of others
//   flipped   a hub without which all its leaves' gradients turn round
std::vector<Case> MeanCases();
std::vector<Case> StepCases();  // one noisy step, full and Poisson batches, with a hidden layer, and two steps seen
// One person who is a node of two versions of a graph, null in both, and a job on each, both releases seen. The claim
// is of both together, as a population's ledger adds them up; or, as a fault, of the larger alone.
enum class Charged { kBoth, kLarger };
Case TwoVersionsCase(Charged charged);
std::vector<Case> ListedCases();       // one step on DP-APPR rows
std::vector<Case> RowCases();          // DP-APPR rows, by GM, EM0 and EM1
std::vector<Case> ExtremalRowCases();  // the same below the graph: vectors as far apart as clipping leaves them
std::vector<Case> HopCases();          // GAP's sums over neighbours
std::vector<Case> SageCases();         // one step on SAGE's rows
std::vector<Case> TrainingCases();     // whole short trainings, also on a sample of the nodes
std::vector<Case> SharesCases();       // the class shares
std::vector<Case> EvaluationCases();   // the charged evaluation
std::vector<Case> AllCases();

}  // namespace dpar::audit

#endif  // DPAR_TESTS_AUDIT_CASE_H_
