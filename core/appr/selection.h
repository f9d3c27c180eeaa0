// The K largest of N noisy scores, at a cost that does not depend on N.
//
// Mechanism: independent noise on every slot 0..N-1, then the K largest. Slots without a score are exchangeable: their
// noises are N - nnz independent draws, so only those that can be among the K largest are drawn, and go to slots
// outside the support, chosen uniformly without replacement. Gumbel noise falls with the exponential that it is made
// of, so these are the K smallest exponentials. A normal is at most its radius, which falls likewise: slots are drawn
// in descending order of radius until K normals are above all radii to come. The result has exactly the distribution of
// the dense form, in expected time O(nnz + K log K) and memory O(nnz + K). There are always N candidates, so the
// support's size never shows. Scores are real numbers compared exactly (core/random/lazy_score.h): the choice is that
// of the ideal mechanism.
#ifndef DPAR_CORE_APPR_SELECTION_H_
#define DPAR_CORE_APPR_SELECTION_H_

#include <cstdint>
#include <vector>

#include "core/appr/solver.h"
#include "core/random/lazy_score.h"
#include "core/random/random.h"

namespace dpar {

struct SelectedEntry {
  int32_t id = 0;
  double value = 0;  // the score without noise; 0 outside the support
  LazyScore score;
};

// The `k` slots (1..node_count) of largest score plus noise, descending. Ids of `scores`: distinct, 0..node_count-1.
std::vector<SelectedEntry> SelectTopK(const SparseVector& scores, int64_t node_count, int64_t k, ScoreNoise noise,
                                      double scale, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_APPR_SELECTION_H_
