// Renyi divergences of a row mixture, by quadrature with an error bound.
#ifndef DPAR_CORE_PRIVACY_MIXTURE_RENYI_H_
#define DPAR_CORE_PRIVACY_MIXTURE_RENYI_H_

#include "core/privacy/flat_event.h"

namespace dpar {

// e^(p l) - 1 - p (e^l - 1), which is never negative for p outside (0, 1), as its logarithm. The expectation of the
// last part under Q is 0 when l is a loss, so that of this is the power's, without the 1 that would swallow small
// values.
double LogPowerExcess(double power, double loss);

// The divergence of the mixture from the plain Gaussian (kRemove) or the other way round (kAdd) at an order > 1,
// rounded up. With L of mixture_loss.h and phi the normal density it is
//   ln(1 + integral of phi (e^(p L) - 1 - p (e^L - 1))) / (order - 1),   p = order or 1 - order.
//
// The trapezoidal rule with step h for a function that is analytic for |Im y| < a errs by at most
// 2 N(a) / (e^(2 pi a / h) - 1), N(a) the integral of its modulus along Im y = a. There |phi| grows by e^(a^2/2); the
// terms of e^L lie in a sector of angle rows a / sigma, so that for an angle below pi they do not cancel: |e^L| is at
// most its value on the real line, and at least cos(angle / 2) times it. h is chosen to make the bound e^-64.
//
// Row counts whose weight is below the smallest double are left out; with them the figure is one of approximate Renyi
// differential privacy, with at most rows 1e-308 of delta for each step.
//
// Also at most order (rows / sigma)^2 / 2, that of the same Gaussian without sampling. Time grows with the square root
// of the order, and with rows / sigma.
double MixtureRenyi(const RowMixture& mixture, Direction direction, double order);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_MIXTURE_RENYI_H_
