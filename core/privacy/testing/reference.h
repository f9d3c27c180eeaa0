// Events of one kind, and what they cost by formulas that the accountant does not use, for tests.
#ifndef DPAR_CORE_PRIVACY_TESTING_REFERENCE_H_
#define DPAR_CORE_PRIVACY_TESTING_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "core/privacy/flat_event.h"

namespace dpar::testing {

FlatEvent OfGaussian(double mu);
FlatEvent OfMixture(const RowMixture& mixture, int64_t count);
FlatEvent OfLaplace(double epsilon, int64_t count);
FlatEvent OfSelection(double range, int64_t count);
FlatEvent OfSample(double rate, FlatEvent inner, int64_t count);

// Delta of one row sampled at a rate, or of a Gaussian on a sample of the nodes: the rules of accountant.h.
double SampledDelta(double rate, double mu, Direction direction, double epsilon);
// Epsilon by the same rules, for a delta below the rate.
double SampledEpsilon(double rate, double mu, Direction direction, double delta);

// Binomial(rows, rate).
std::vector<long double> RowWeights(int rows, double rate);

// ln of the sum over j of C(a,j) (1-q)^(a-j) q^j e^(j(j-1)/(2 sigma^2)), over a - 1: one row, removal.
long double BinomialRenyi(double rate, double sigma, int order);
// ln of the integral of phi m^(1-a), over a - 1, by plain trapezoids: addition, for parameters at which it is well
// above 0.
long double NaiveAddition(int rows, double rate, double sigma, double order);

}  // namespace dpar::testing

#endif  // DPAR_CORE_PRIVACY_TESTING_REFERENCE_H_
