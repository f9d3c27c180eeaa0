// A step over rows that read edges, under a degree promise.
//
// Relation: one of two graphs is the other with a node made null, and no node of either has more than D neighbours. The
// mechanism adds Gaussian noise to the sum of the clipped gradients of a Poisson batch. A row reads its owner and the
// owner's neighbours, so removing a node takes away its own row and *changes* the rows of its neighbours, at most D:
// the lists of neighbours themselves differ, so no rule about null slots makes those rows vanish.
//
// Proof. Whether a row is in the batch does not depend on the data, so let both graphs draw the same batch, and let the
// mechanism also reveal which of the D + 1 rows are in it: k of the neighbours', k ~ Binomial(D, q), and the node's own
// or not. Hiding that again is post-processing. Given the batch, the sums differ by at most C for the own row, which
// vanishes, by at most 2 C for each of the k, whose gradients are at most C long before and after, and by rounding if
// any of them is there: a Gaussian mechanism of sensitivity (2 k + own) C + rounding. Each revealed outcome has the
// same probability on both graphs, so the profile is the average
//   delta(eps) = sum over k, own of P[k] P[own] delta_Gaussian(eps, ((2 k + own) C + rounding) / sigma),
// the same in both directions, and is that of one pair of distributions. Fewer neighbours have a smaller profile, since
// the Gaussian's rises with its shift. Steps compose adaptively. Rows that sample neighbours once before all steps are
// covered: the bound holds for every choice of both graphs' samples that agree outside of the node's neighbourhood, and
// profiles are jointly convex. At q = 1 it is a Gaussian of sensitivity (1 + 2 D) C.
//
// A mixture of the shifted sums against the plain one, without the revelation, would NOT be a bound: both graphs' sums
// move with the batch.
#ifndef DPAR_CORE_PRIVACY_ROW_CHANGE_H_
#define DPAR_CORE_PRIVACY_ROW_CHANGE_H_

#include <cstdint>

#include "core/privacy/flat_event.h"
#include "core/privacy/loss_atoms.h"

namespace dpar {

// One step's loss as atoms: those of a Gaussian for each revealed number of rows, moved to the ends of up to 2^14
// intervals by the rule of docs/privacy.md, which never lowers the curve and adds some ten-thousandths to epsilon.
// Numbers of total weight at most tail_mass are cut: large ones become infinite loss, small ones the smallest kept.
LossAtoms RowChangeAtoms(const RowChange& change, double tail_mass);

// How many intervals the Gaussians are cut into.
double RowChangeIntervals(const RowChange& change, double tail_mass);

// The Renyi divergence at an order > 1, rounded up: ln(sum of all weights times e^(a (a-1) mu^2 / 2)) / (a - 1).
double RowChangeRenyi(const RowChange& change, double order);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_ROW_CHANGE_H_
