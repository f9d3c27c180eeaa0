// How far two samples of a mechanism's releases, one for each of two neighbouring graphs, prove that its epsilon is
// above a number.
//
// For any event S, P[S | G] <= e^epsilon P[S | G'] + delta, both ways around. So with a confidence bound p from below
// on the one probability and q from above on the other, epsilon >= ln((p - delta) / q). The event is chosen on the
// first quarter of the runs, by whatever means, and both probabilities are bounded on the rest, by Clopper and
// Pearson's exact intervals: whatever was chosen, and however badly, the bound is wrong with the stated probability at
// most.
//
// Events are "the score is at least t" and "the score is at most t". Scores are the two that are best when both samples
// are normal: Fisher's linear one for equal covariances, and the difference of log densities for any. For a Gaussian
// mechanism the first is the likelihood ratio; the second finds noise that was used twice, whose covariance is
// singular.
#ifndef DPAR_TESTS_AUDIT_DISTINGUISHER_H_
#define DPAR_TESTS_AUDIT_DISTINGUISHER_H_

#include <Eigen/Core>
#include <cstdint>

namespace dpar::audit {

// Releases as vectors, one row for each run.
using Releases = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The bounds of Clopper and Pearson (1934) on a probability of which `hits` of `trials` are known, each wrong with
// probability `error` at most.
double ProbabilityAtLeast(int64_t hits, int64_t trials, double error);
double ProbabilityAtMost(int64_t hits, int64_t trials, double error);

// A number that epsilon at `delta` is not below, but with probability `error` at most; 0 when nothing is proven. Both
// samples have as many columns, and 4 rows at least.
double EpsilonAtLeast(Releases with, Releases without, double delta, double error);

}  // namespace dpar::audit

#endif  // DPAR_TESTS_AUDIT_DISTINGUISHER_H_
