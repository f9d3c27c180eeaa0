// Plain forms of what core/appr does cleverly, to test it against and to measure it beside.
#ifndef DPAR_CORE_APPR_TESTING_REFERENCE_H_
#define DPAR_CORE_APPR_TESTING_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "core/appr/solver.h"
#include "core/graph/graph.h"
#include "core/random/lazy_score.h"
#include "core/random/random.h"

namespace dpar::testing {

// The synchronous iteration of the paper that the solver cites, as printed there: every round takes a gradient step of
// length 1 in all coordinates that pass the threshold. Dense arrays of the graph's length, allocated once and cleaned
// where they were touched.
class TextbookIsta {
 public:
  TextbookIsta(const EdgesView& edges, const ApprParameters& parameters);

  SparseVector Solve(int64_t seed);

 private:
  [[nodiscard]] double DegreeOf(size_t node) const;
  void Touch(size_t node);

  const EdgesView edges_;
  const ApprParameters parameters_;
  std::vector<double> root_degrees_;
  std::vector<double> x_;
  std::vector<double> gradient_;
  std::vector<bool> is_touched_;
  std::vector<size_t> touched_;
};

struct NoisyEntry {
  int32_t id = 0;
  double value = 0;  // the score; 0 outside the support
  double noise = 0;

  [[nodiscard]] double noisy() const { return value + noise; }
};

// Noise in plain doubles on all slots, then the largest k of them in descending order: O(N).
std::vector<NoisyEntry> DenseTopK(const SparseVector& scores, int64_t node_count, int64_t k, ScoreNoise noise,
                                  double scale, RandomSource& random);

}  // namespace dpar::testing

#endif  // DPAR_CORE_APPR_TESTING_REFERENCE_H_
