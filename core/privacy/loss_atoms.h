// One mechanism's privacy-loss distribution as finitely many atoms that dominate it.
//
// For a dominating pair (P, Q) the loss is ln(dP/dQ) under P. Cut the outcomes into intervals of loss [a, b] with
// P-mass p and Q-mass q, and move up = (p - e^a q) / (1 - e^(a-b)) to b and the rest to a, which keeps both masses. The
// atoms' hockey-stick curve joins the true curve's values at the ends by chords in e^eps (Doroshenko, Ghazi, Kamath,
// Kumar, Manurangsi 2022, "connect the dots"). The true curve is convex in e^eps, so the atoms are never below it. p -
// e^a q is computed as the integral of its positive integrand, so nothing cancels.
#ifndef DPAR_CORE_PRIVACY_LOSS_ATOMS_H_
#define DPAR_CORE_PRIVACY_LOSS_ATOMS_H_

#include <vector>

#include "core/privacy/flat_event.h"

namespace dpar {

struct LossAtoms {
  std::vector<double> loss;  // increasing
  std::vector<double> mass;  // under P
  double infinite_mass = 0;  // under P, where Q has none
  double step = 0;           // the width of the intervals that they came from, in the unit of the function below
};

inline constexpr double kLargestIntervalStep = 0.02;  // in standard deviations

// A Gaussian of shift mu against none, in intervals of at most `step` standard deviations. Outcomes of P-mass at most
// `tail_mass` on either side are cut: large loss becomes infinite, small loss the smallest kept. Time and memory grow
// with (mu + sqrt(ln(1/tail_mass))) / step.
LossAtoms GaussianAtoms(double mu, double step, double tail_mass);

// The same for a mixture. Time also grows with the number of row counts whose weights exceed tail_mass.
LossAtoms MixtureAtoms(const RowMixture& mixture, Direction direction, double step, double tail_mass);

// Laplace noise on a number of sensitivity / scale = epsilon: atoms at -epsilon and epsilon, and a density e^(l/2) / 4
// e^(-epsilon/2) between them, in intervals of at most `step` epsilons. The same in both directions.
LossAtoms LaplaceAtoms(double epsilon, double step);

// A selection of bounded range: the pair whose profile is the supremum over all selections of that range, delta(eps) =
// (1 - e^((eps - range)/2))^2 / (1 - e^-range), attained for each eps by a two-point selection. Intervals of at most
// `step` ranges. The same in both directions.
LossAtoms SelectionAtoms(double range, double step);

// How many intervals of `step` standard deviations a mixture would be cut into, and a Gaussian at least.
double MixtureIntervals(const RowMixture& mixture, double step, double tail_mass);
double GaussianIntervals(double mu, double tail_mass);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_LOSS_ATOMS_H_
