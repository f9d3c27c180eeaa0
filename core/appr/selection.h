// The K largest of N noisy scores, at a cost that does not depend on N.
//
// Mechanism: independent noise on every slot 0..N-1, then the K largest. Slots without a score are exchangeable: their
// noises are N - nnz independent draws, so the largest of them are drawn as order statistics
// (core/random/order_statistics.h) and given to slots outside the support, chosen uniformly without replacement. The
// result has exactly the distribution of the dense form, in expected time O(nnz + K log K) and memory O(nnz + K). The
// number of candidates is N always, so nothing about the support's size shows in what may be chosen.
//
// Precision: a noisy score is computed within about 2^-47 of the noise's scale, 2^-43 where scores reach 500 scales,
// the most that a selection with a price may have. What is chosen differs from the choice in exact arithmetic only when
// two scores at the border are that close; for Gumbel noise the gap between the k-th and the next score is at least
// exponential of rate k over the scale, so this has probability at most about K 2^-43 a row, and like the generator's
// own error it is stated, not charged. (For Gaussian noise the choice is post-processing and needs no such argument.)
// Ties have no other rule: equal doubles keep whichever came first, within the same bound.
#ifndef DPAR_CORE_APPR_SELECTION_H_
#define DPAR_CORE_APPR_SELECTION_H_

#include <cstdint>
#include <vector>

#include "core/appr/solver.h"
#include "core/random/random.h"

namespace dpar {

enum class SelectionNoise { kGumbel, kGaussian };

struct SelectedEntry {
  int32_t id = 0;
  double value = 0;  // the score; 0 outside the support
  double noise = 0;

  [[nodiscard]] double noisy() const { return value + noise; }
};

// The `k` slots (1..node_count) with the largest score plus noise of this scale, in descending order. Ids of `scores`
// are distinct and in 0..node_count-1.
std::vector<SelectedEntry> SelectTopK(const SparseVector& scores, int64_t node_count, int64_t k, SelectionNoise noise,
                                      double scale, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_APPR_SELECTION_H_
