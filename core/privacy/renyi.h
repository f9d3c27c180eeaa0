// Renyi differential privacy: divergences of events at an order, and their conversion to epsilon.
//
// Divergences at one order add up under full adaptivity (Feldman and Zrnic 2021), which is what the ledger rests on.
//   Gaussian        a mu^2 / 2
//   Laplace         ln(a/(2a-1) e^((a-1) e) + (a-1)/(2a-1) e^(-a e)) / (a-1), e = sensitivity / scale (Mironov 2017)
//   selection       the supremum over two-point selections of the range, in closed form; at most a range^2 / 8
//   row mixture     quadrature (mixture_renyi.h)
//   row change      closed form (row_change.h)
//   node sampling   at integer orders, from all smaller ones (below)
#ifndef DPAR_CORE_PRIVACY_RENYI_H_
#define DPAR_CORE_PRIVACY_RENYI_H_

#include <vector>

#include "core/privacy/flat_event.h"

namespace dpar {

struct Renyi {
  double remove = 0;
  double add = 0;

  [[nodiscard]] double In(Direction direction) const { return direction == Direction::kRemove ? remove : add; }
};

// Divergences at an order > 1, rounded up. Node-sampled parts take the next integer order, which only raises them. With
// w = dP/dQ of the inner event and rate q,
//   removal   E[(1 - q + q w)^a] = 1 + sum over l = 2..a of C(a,l) (1-q)^(a-l) q^l (e^((l-1) D_l) - 1), exactly;
//   addition  E[(1 - q + q w)^(1-a)] is at most (1-q)^(1-a); by convexity 1 - q + q e^((a-1) D_a); and by Taylor's
//             theorem (second derivative largest at w = 0) 1 + a (a-1)/2 q^2 (1-q)^(-a-1) (e^(D_2) - 1).
// Above a few dozen l, (l-1) D_l, which is convex in l, is bounded by its chords.
Renyi RenyiOf(const FlatEvent& event, double order);

// The smallest epsilon >= 0 that a divergence at an order gives at delta (Canonne, Kamath and Steinke 2020).
double RenyiToEpsilon(double divergence, double order, double delta);

// A dense grid: 1.01 to 11 by tenths and finer, integers, and then powers of the 16th root of 2 up to 2^20.
const std::vector<double>& RenyiOrders();

struct RenyiEpsilonBound {
  double epsilon = 0;
  double order = 0;
};

// The smallest over increasing `orders`, by bisection: (a-1) D_a is convex in a, and so is what the tight conversion
// adds; divided by a - 1 the sum has one minimum.
RenyiEpsilonBound RenyiEpsilon(const FlatEvent& event, Direction direction, double delta,
                               const std::vector<double>& orders);

// The smallest over all orders between the neighbours of the best of RenyiOrders(), to about 1e-9 relative.
double RenyiEpsilon(const FlatEvent& event, Direction direction, double delta);

double RenyiDelta(const FlatEvent& event, Direction direction, double epsilon);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_RENYI_H_
