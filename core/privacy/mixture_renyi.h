// Renyi divergences of a row mixture, by quadrature with an error bound.
#ifndef DPAR_CORE_PRIVACY_MIXTURE_RENYI_H_
#define DPAR_CORE_PRIVACY_MIXTURE_RENYI_H_

#include "core/privacy/flat_event.h"

namespace dpar {

// ln of e^(p l) - 1 - p (e^l - 1), which is never negative for p outside (0, 1). For a loss l the last part has
// expectation 0 under Q, so this gives the power's expectation without the 1 that would swallow small values.
double LogPowerExcess(double power, double loss);

// The divergence of the mixture from the plain Gaussian (kRemove) or the other way round (kAdd) at an order > 1,
// rounded up. With L of mixture_loss.h and phi the normal density it is
//   ln(1 + integral of phi (e^(p L) - 1 - p (e^L - 1))) / (order - 1),   p = order or 1 - order.
// The trapezoidal rule with step h for a function that is analytic for |Im y| < a errs by at most 2 N(a) / (e^(2 pi a /
// h) - 1), N(a) the integral of its modulus along Im y = a. There |phi| grows by e^(a^2/2). The terms of e^L lie in a
// sector of angle rows a / sigma, so for an angle below pi |e^L| is between cos(angle / 2) times its value on the real
// line and that value. h makes the bound e^-64.
//
// Row counts whose weight is below the smallest double are left out; with them the figure is one of approximate Renyi
// differential privacy, with at most rows 1e-308 of delta for each step. Never above order (rows / sigma)^2 / 2, the
// Gaussian without sampling. Time grows with the square root of the order, and with rows / sigma.
double MixtureRenyi(const RowMixture& mixture, Direction direction, double order);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_MIXTURE_RENYI_H_
