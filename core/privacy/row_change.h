// A step over rows that read edges, under a degree promise.
//
// Relation: one of two graphs is the other with a node made null, and no node of either has more than D neighbours.
// The mechanism adds Gaussian noise to the sum of the clipped gradients of a Poisson batch. A row reads its owner and
// the owner's neighbours, so that removing a node takes away its own row and *changes* the rows of its neighbours, at
// most D: lists of neighbours themselves differ, so that no rule about null slots could make those rows vanish.
//
// Proof. Whether a row is in the batch is drawn independently of the data, so let both graphs draw the same batch, and
// let the mechanism also reveal which of the D + 1 rows are in it: k of the neighbours', k ~ Binomial(D, q), and the
// node's own or not. Leaving the revelation away again is post-processing. Given the batch, the sums differ by at most
// C for the own row, which vanishes, and by at most 2 C for each of the k, whose gradients are at most C long before
// and after, and by rounding where any of them is there: a Gaussian mechanism of sensitivity (2 k + own) C + rounding.
// Each outcome of the revelation has the same probability on both graphs, so that the profile is the average
//   delta(eps) = sum over k, own of P[k] P[own] delta_Gaussian(eps, ((2 k + own) C + rounding) / sigma),
// the same in both directions, and is that of one pair of distributions. A node with fewer neighbours costs less, since
// the Gaussian's profile rises with its shift. Steps compose adaptively, as the pairs of any mechanisms do; rows that
// sample neighbours once before all steps are covered too, because for every choice of both graphs' samples that agree
// outside of the node's neighbourhood the bound holds, and profiles are jointly convex. At q = 1 it is a Gaussian of
// sensitivity (1 + 2 D) C.
//
// A mixture of the shifted sums against the plain one, without the revelation, would NOT be a bound: both graphs' sums
// move with the batch.
#ifndef DPAR_CORE_PRIVACY_ROW_CHANGE_H_
#define DPAR_CORE_PRIVACY_ROW_CHANGE_H_

#include <cstdint>
#include <vector>

#include "core/privacy/flat_event.h"
#include "core/privacy/loss_atoms.h"

namespace dpar {

// The loss of one step as atoms: those of a Gaussian for each revealed number of rows, cut as finely as masses are
// integrated, and then moved to the ends of up to 2^14 intervals by the rule of docs/privacy.md, which leaves the curve
// nowhere lower. That overstates epsilon by some ten-thousandths of itself. Numbers of rows that together have a weight
// of at most tail_mass are left out: above, they count as infinite loss, below, as the smallest number that is kept.
LossAtoms RowChangeAtoms(const RowChange& change, double tail_mass);

// How many intervals the Gaussians are cut into.
double RowChangeIntervals(const RowChange& change, double tail_mass);

// The Renyi divergence at an order > 1, in closed form and rounded up:
// ln(sum of weights times e^(a (a-1) mu^2 / 2)) / (a - 1). No weight is left out.
double RowChangeRenyi(const RowChange& change, double order);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_ROW_CHANGE_H_
