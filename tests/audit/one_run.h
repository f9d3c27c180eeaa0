// The audit of a whole training in one run (Steinke, Nasr and Jagielski 2023): many canaries, each in the graph or made
// null by a fair coin, and as many guesses from the released model as are right more often than epsilon allows.
#ifndef DPAR_TESTS_AUDIT_ONE_RUN_H_
#define DPAR_TESTS_AUDIT_ONE_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dpar/v1/training.pb.h"

namespace dpar::audit {

// The probability, at most, that of `guesses` about `canaries` nodes `right` or more are right if training is (epsilon,
// delta)-differentially private: the paper's Theorem 5.2. With q = 1 / (1 + e^-epsilon), X ~ Binomial(guesses, q),
//   P[X >= right] + 2 canaries delta max over i of (P[X >= right - i] - P[X >= right]) / i.
double GuessingTail(int64_t canaries, int64_t guesses, int64_t right, double epsilon, double delta);

// A number that epsilon at `delta` is not below, but with probability `error` at most.
double EpsilonFromGuesses(int64_t canaries, int64_t guesses, int64_t right, double delta, double error);

struct OneRunOptions {
  int64_t canaries = 2000;
  uint64_t seed = 1;
  int threads = 1;
};

struct OneRun {
  std::string method;
  double claim = 0;  // infinite without noise
  int64_t guesses = 0;
  int64_t right = 0;
  double bound = 0;
};

// One training. Epsilon 0 trains without noise, to show what the guesses are worth. `error` as above.
OneRun AuditInOneRun(v1::Method method, double epsilon, const OneRunOptions& options, double error);

// `features` and the three DPAR methods at epsilon 1, 4 and 8, and all without noise; 99% confidence together.
std::vector<OneRun> OneRunAudits(const OneRunOptions& options);
bool Passed(const std::vector<OneRun>& runs);
std::string Table(const std::vector<OneRun>& runs);

}  // namespace dpar::audit

#endif  // DPAR_TESTS_AUDIT_ONE_RUN_H_
