// How sure mean-field is, and how much neighbours count in it where label shift was found.
//
// U are the scores with the correction b (label_shift.h), s = ScoreScale(nu), t = min(1, 1/s), S the result of
// mean-field at neighbour weight w, d a node's degree.
//
// Probabilities are softmax(t S / sqrt(1 + w d)): U overstates what features tell by 1/t, and neighbours repeat one
// another, so that d of them count as sqrt(d). A node's best class does not depend on it.
//
// Weight. On a region whose classes are mixed differently, mean-field may take groups of linked nodes for classes,
// against what features say. How often the best class a of features is wrong follows from their own probabilities,
// softmax(t (U - b) + b). So w is the largest of 1, 1/2, 1/4, ..., 1/32 for which
//   sum (1 - softmax(S)_a) <= 1.5 sum (1 - softmax(t (U - b) + b)_a)   over all nodes,
// or 0, where neighbours do not count. Where no shift was found, w is 1. Reads the released model and the caller's
// graph alone: post-processing.
#ifndef DPAR_CORE_INFER_NEIGHBOUR_WEIGHT_H_
#define DPAR_CORE_INFER_NEIGHBOUR_WEIGHT_H_

#include <vector>

#include "core/graph/graph.h"
#include "core/infer/row_blocks.h"

namespace dpar {

struct HeardNeighbours {
  NodeMatrix scores;  // S, up to a number for each node
  double weight = 1;  // w
};

// `own` is U, `correction` b, or empty where no shift was found, `scale` is s. The result does not depend on `threads`.
// Time of MeanField, up to six times where shift was found.
HeardNeighbours HearNeighbours(const EdgesView& edges, NodeMatrix own, const std::vector<double>& correction,
                               double scale, int threads);

// Scores whose softmax are probabilities, in place of S.
void TemperScores(const EdgesView& edges, double scale, double weight, int threads, NodeMatrix& scores);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_NEIGHBOUR_WEIGHT_H_
